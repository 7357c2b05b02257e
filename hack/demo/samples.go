package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/privatecloud/operator/api/v1alpha1"
)

const (
	samples     = "config/samples"
	groupSample = samples + "/samplecontroller_v1alpha1_vmgroup.yaml"
	// mistakenGroup is named as the seed of VmGroup has it.
	mistakenGroup      = "vg-2"
	prohibitedTemplate = "no-such-template"
	// sampleTime is how long all samples together may take to become what they are to be.
	sampleTime = 2 * time.Minute
)

func defaultCloud() *unstructured.Unstructured {
	c := &unstructured.Unstructured{}
	c.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("Cloud"))
	c.SetName(v1alpha1.DefaultCloudName)
	return c
}

func (s *stack) applySamples(ctx context.Context) error {
	return s.does(ctx, "apply", "-k", samples)
}

// applyMistaken makes the sample of a group once more, with a template that the
// cloud prohibits.
func (s *stack) applyMistaken(ctx context.Context) error {
	group, err := s.mistaken()
	if err != nil {
		return err
	}
	if err := s.api.Client.Create(ctx, group); err != nil {
		return fmt.Errorf("creating VmGroup %q: %w", group.GetName(), err)
	}
	s.say("VmGroup/%s is made as that of %s, but with a template that the cloud prohibits", mistakenGroup, groupSample)
	return nil
}

func (s *stack) mistaken() (*unstructured.Unstructured, error) {
	manifest, err := os.ReadFile(filepath.Join(s.root, groupSample))
	if err != nil {
		return nil, fmt.Errorf("reading the sample of a group: %w", err)
	}
	objects, err := decode(manifest)
	if err != nil {
		return nil, err
	}
	if len(objects) != 1 {
		return nil, fmt.Errorf("%s has %d objects, expected one", groupSample, len(objects))
	}
	group := objects[0]
	group.SetNamespace("default")
	group.SetName(mistakenGroup)
	return group, unstructured.SetNestedField(group.Object, prohibitedTemplate, "spec", "template")
}

// does runs kubectl, and says so with what it answers.
func (s *stack) does(ctx context.Context, args ...string) error {
	output, err := s.kubectl(ctx, args...)
	if err != nil {
		return err
	}
	s.say("%s", commandLine(args))
	for line := range bytes.Lines(output) {
		s.say("  %s", bytes.TrimSpace(line))
	}
	return nil
}

// commandLine is what one types to run kubectl with these arguments.
func commandLine(args []string) string {
	words := []string{"kubectl"}
	for _, arg := range args {
		if strings.ContainsAny(arg, `{" `) {
			arg = "'" + arg + "'"
		}
		words = append(words, arg)
	}
	return strings.Join(words, " ")
}

// await waits until all objects are as expected, and tells of each that is.
func (s *stack) await(ctx context.Context, within time.Duration, objects ...*unstructured.Unstructured) error {
	told := make([]bool, len(objects))
	var missing []string
	err := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, within, true, func(context.Context) (bool, error) {
		missing = nil
		for i, object := range objects {
			name := object.GetKind() + "/" + object.GetName()
			now, differences := s.compare(ctx, object)
			for _, difference := range differences {
				missing = append(missing, name+": "+difference)
			}
			if len(differences) == 0 && !told[i] {
				told[i] = true
				ready := conditionsOf(now)["Ready"]
				s.say("%s is as expected: Ready is %s, %s", name, ready.status, ready.reason)
			}
		}
		return len(missing) == 0, nil
	})
	switch {
	case context.Cause(ctx) != nil:
		return context.Cause(ctx)
	case err != nil:
		return fmt.Errorf("not as expected after %v:\n  %s", within, strings.Join(missing, "\n  "))
	}
	return nil
}

// compare reads an object and returns in what it is not as expected.
func (s *stack) compare(ctx context.Context, object *unstructured.Unstructured) (*unstructured.Unstructured, []string) {
	key := client.ObjectKeyFromObject(object)
	if namespaced, err := s.api.Client.IsObjectNamespaced(object); err == nil && namespaced && key.Namespace == "" {
		key.Namespace = "default"
	}
	ctx, cancel := context.WithTimeout(ctx, aMoment)
	defer cancel()
	now := &unstructured.Unstructured{}
	now.SetGroupVersionKind(object.GroupVersionKind())
	if err := s.api.Client.Get(ctx, key, now); err != nil {
		return now, []string{err.Error()}
	}
	return now, unmet(now, expectationOf(object))
}
