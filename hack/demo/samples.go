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

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
)

const (
	samples     = "config/samples"
	groupSample = samples + "/samplecontroller_v1alpha1_vmgroup.yaml"
	// invalidGroupName names a second group, whose template the cloud refuses.
	invalidGroupName   = "vg-2"
	prohibitedTemplate = "no-such-template"
	// sampleTime bounds the time until all samples are as expected.
	sampleTime = 2 * time.Minute
)

func defaultCloud() *unstructured.Unstructured {
	c := &unstructured.Unstructured{}
	c.SetGroupVersionKind(pcapi.GroupVersion.WithKind("Cloud"))
	c.SetName(pcapi.DefaultCloudName)
	return c
}

func (s *stack) applySamples(ctx context.Context) error {
	return s.runKubectl(ctx, "apply", "-k", s.on.samples())
}

// applyInvalidGroup creates a copy of the sample of a group with a template that
// the cloud refuses.
func (s *stack) applyInvalidGroup(ctx context.Context) error {
	group, err := s.invalidGroup()
	if err != nil {
		return err
	}
	if err := s.api.Client.Create(ctx, group); err != nil {
		return fmt.Errorf("creating VmGroup %q: %w", group.GetName(), err)
	}
	s.say("created VmGroup/%s: a copy of %s with a template that the cloud refuses", invalidGroupName, groupSample)
	return nil
}

func (s *stack) invalidGroup() (*unstructured.Unstructured, error) {
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
	group.SetName(invalidGroupName)
	return group, unstructured.SetNestedField(group.Object, prohibitedTemplate, "spec", "template")
}

// runKubectl runs kubectl and prints the command and its output.
func (s *stack) runKubectl(ctx context.Context, args ...string) error {
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

// commandLine returns the shell command that runs kubectl with these arguments.
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

// await waits until all objects are as expected and prints each that is.
func (s *stack) await(ctx context.Context, within time.Duration, objects ...*unstructured.Unstructured) error {
	return s.awaitThat(ctx, within, s.on.expected(), objects...)
}

func (s *stack) awaitThat(ctx context.Context, within time.Duration, all expectations, objects ...*unstructured.Unstructured) error {
	reported := make([]bool, len(objects))
	var missing []string
	err := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, within, true, func(context.Context) (bool, error) {
		missing = nil
		for i, object := range objects {
			name := object.GetKind() + "/" + object.GetName()
			now, differences := s.compare(ctx, all, object)
			for _, difference := range differences {
				missing = append(missing, name+": "+difference)
			}
			if len(differences) == 0 && !reported[i] {
				reported[i] = true
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

// compare reads an object and returns it with its differences from the
// expectation.
func (s *stack) compare(ctx context.Context, all expectations, object *unstructured.Unstructured) (*unstructured.Unstructured, []string) {
	key := client.ObjectKeyFromObject(object)
	if namespaced, err := s.api.Client.IsObjectNamespaced(object); err == nil && namespaced && key.Namespace == "" {
		key.Namespace = "default"
	}
	ctx, cancel := context.WithTimeout(ctx, shortWait)
	defer cancel()
	now := &unstructured.Unstructured{}
	now.SetGroupVersionKind(object.GroupVersionKind())
	if err := s.api.Client.Get(ctx, key, now); err != nil {
		return now, []string{err.Error()}
	}
	return now, differencesOf(now, all.of(object))
}
