package plan

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// strict has the API server refuse fields that it does not know, as kubectl apply does. Server-side
// apply always refuses them.
const strict = client.FieldValidation(metav1.FieldValidationStrict)

type applyOptions struct {
	serverSide, force bool
	fieldManager      string
}

// dryRun returns the object that exists, nil if there is none, and what applying the manifest
// makes of it. The API server decides, and stores nothing.
func dryRun(ctx context.Context, c client.Client, manifest *unstructured.Unstructured, opts applyOptions) (live, applied *unstructured.Unstructured, err error) {
	live, err = find(ctx, c, manifest)
	if err != nil {
		return nil, nil, err
	}
	switch {
	case opts.serverSide:
		applied = manifest.DeepCopy()
		options := []client.ApplyOption{client.DryRunAll, client.FieldOwner(opts.fieldManager)}
		if opts.force {
			options = append(options, client.ForceOwnership)
		}
		err = c.Apply(ctx, client.ApplyConfigurationFromUnstructured(applied), options...)
	case live == nil:
		applied = manifest.DeepCopy()
		err = c.Create(ctx, applied, client.DryRunAll, strict)
	default:
		applied = live.DeepCopy()
		var patch []byte
		if patch, err = threeWay(manifest, live); err == nil {
			err = c.Patch(ctx, applied, client.RawPatch(types.MergePatchType, patch), client.DryRunAll, strict)
		}
	}
	return live, applied, refusal(err)
}

// refusedError is the answer to a dry run, in other words.
type refusedError struct {
	text string
	err  error
}

func (e *refusedError) Error() string { return e.text }
func (e *refusedError) Unwrap() error { return e.err }

// refusal returns the error of a dry run with what the user can do about it. The API server answers
// a patch that it cannot decode with the whole object, which is left out.
func refusal(err error) error {
	if err == nil {
		return nil
	}
	const refused, unknown = "the API server refuses the manifest: ", ": correct the name of the field, or upgrade the operator if it is older than the field"
	text := err.Error()
	switch at := strings.LastIndex(text, "strict decoding error: "); {
	case at >= 0 && strings.Contains(text[at:], "unknown field"):
		return &refusedError{refused + text[at:] + unknown, err}
	case at >= 0:
		return &refusedError{refused + text[at:], err}
	case strings.Contains(text, "field not declared in schema"):
		return &refusedError{refused + text + unknown, err}
	case apierrors.HasStatusCause(err, metav1.CauseTypeFieldManagerConflict):
		return &refusedError{text + ": plan with --force-conflicts to see what follows if you take the fields over", err}
	}
	return err
}

// find returns the object of a manifest as it is stored, nil if it is not.
func find(ctx context.Context, c client.Client, manifest *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(manifest.GroupVersionKind())
	err := c.Get(ctx, client.ObjectKeyFromObject(manifest), live)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // there is none
	}
	return live, err
}

// threeWay returns the patch that kubectl apply sends: fields that the last apply had and the
// manifest has not are removed.
func threeWay(manifest, live *unstructured.Unstructured) ([]byte, error) {
	modified, err := json.Marshal(manifest)
	if err != nil {
		return nil, fmt.Errorf("encode the manifest: %w", err)
	}
	current, err := json.Marshal(live)
	if err != nil {
		return nil, fmt.Errorf("encode the object: %w", err)
	}
	original := []byte(live.GetAnnotations()[corev1.LastAppliedConfigAnnotation])
	patch, err := jsonmergepatch.CreateThreeWayJSONMergePatch(original, modified, current)
	if err != nil {
		return nil, fmt.Errorf("compare the manifest with the object: %w", err)
	}
	return patch, nil
}

// deletion returns the object of a manifest, and what it is while it is being deleted; nil if
// it does not exist, or if nothing holds it.
func deletion(ctx context.Context, c client.Client, manifest *unstructured.Unstructured) (live, deleted *unstructured.Unstructured, err error) {
	live, err = find(ctx, c, manifest)
	if err != nil || live == nil || len(live.GetFinalizers()) == 0 {
		return live, nil, err
	}
	deleted = live.DeepCopy()
	if deleted.GetDeletionTimestamp() == nil {
		deleted.SetDeletionTimestamp(new(metav1.Now()))
	}
	return live, deleted, nil
}
