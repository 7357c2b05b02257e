package testkit

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
)

// ClaimAtCreation applies the admission policy of the component claim-at-creation to
// the namespaces with these labels, or to all without labels. It returns a function that
// deletes the policy.
func (e *Env) ClaimAtCreation(ctx context.Context, labels map[string]string) (remove func(context.Context) error, err error) {
	root, err := ModuleRoot()
	if err != nil {
		return nil, err
	}
	content, err := os.ReadFile(filepath.Join(root, "config", "components", "claim-at-creation", "policy.yaml"))
	if err != nil {
		return nil, fmt.Errorf("reading the admission policy: %w", err)
	}
	selector, err := json.Marshal(map[string]any{"matchLabels": labels})
	if err != nil {
		return nil, fmt.Errorf("encoding the labels of namespaces: %w", err)
	}
	const constraints = "  matchConstraints:\n"
	before, after, found := strings.Cut(string(content), constraints)
	if !found {
		return nil, fmt.Errorf("the admission policy has no line %q", constraints)
	}
	policy := fmt.Sprintf("%s%s    namespaceSelector: %s\n%s", before, constraints, selector, after)
	if _, err := e.Kubectl(ctx, policy, "apply", "-f", "-"); err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		_, err := e.Kubectl(ctx, policy, "delete", "-f", "-")
		return err
	}, nil
}

// ClaimedAtCreation reports whether the API server stores a VM with its claim. It stores
// nothing.
func ClaimedAtCreation(ctx context.Context, c client.Client, vm *pcapi.VM) (bool, error) {
	stored := vm.DeepCopy()
	err := c.Create(ctx, stored, client.DryRunAll)
	return slices.Contains(stored.Finalizers, pcapi.VMFinalizer), err
}
