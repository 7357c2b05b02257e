package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
)

// edits are the changes to groups that are as expected.
var edits = []struct {
	args         []string
	group, field string
	value        any
}{
	{[]string{"scale", "--replicas=5", "vmgroup", "vmgroup-sample"}, "vmgroup-sample", "replicas", int64(5)},
	{
		[]string{"patch", "vg", invalidGroupName, "--type", "merge", "-p", `{"spec":{"template":"vm-operator-template"}}`},
		invalidGroupName, "template", "vm-operator-template",
	},
}

// verify waits until every sample is as expected, prints them, edits groups, changes
// the cloud by hand, deletes everything and checks that no server remains in the cloud.
func (s *stack) verify(ctx context.Context) error {
	all := s.on.expected()
	objects, err := s.applied(ctx)
	if err != nil {
		return err
	}
	if err := s.await(ctx, sampleTime, objects...); err != nil {
		return err
	}
	if err := s.on.check(ctx, s, requested(all, objects), requested(all, objects)); err != nil {
		return err
	}
	if err := s.print(ctx, "get clouds", "get networks", "get vms", "get vg", "get gpu"); err != nil {
		return err
	}
	if err := s.editGroups(ctx, objects); err != nil {
		return err
	}
	if err := s.on.check(ctx, s, requested(all, objects), requested(all, objects)); err != nil {
		return err
	}
	if err := s.print(ctx, "get vg", "get vms -l "+pcapi.GroupLabel+"=vmgroup-sample", "events --for vmgroup/vmgroup-sample"); err != nil {
		return err
	}
	wanted := requested(all, objects)
	deleted, err := s.on.changeByHand(ctx, s)
	if err != nil {
		return err
	}
	if err := s.on.check(ctx, s, wanted, counts{servers: wanted.servers - deleted, networks: wanted.networks}); err != nil {
		return err
	}
	if err := s.deleteAll(ctx); err != nil {
		return err
	}
	if err := s.on.check(ctx, s, wanted, counts{}); err != nil {
		return err
	}
	s.say("the %s: each of %d servers and %d networks was created once, and all are deleted", s.on.title(), wanted.servers, wanted.networks)
	return s.checkPermissions()
}

// applied returns the objects that were applied until now, as they were applied.
func (s *stack) applied(ctx context.Context) ([]*unstructured.Unstructured, error) {
	objects, err := s.kustomize(ctx, s.on.samples())
	if err != nil {
		return nil, err
	}
	output, err := s.kubectl(ctx, "get", "-f", s.on.refused(), "-o", "yaml")
	if err != nil {
		return nil, err
	}
	stalled, err := decode(output)
	if err != nil {
		return nil, err
	}
	invalid, err := s.invalidGroup()
	if err != nil {
		return nil, err
	}
	return append(append(objects, stalled...), invalid), nil
}

// editGroups changes groups, in the cluster and in objects, and waits until they are
// as expected.
func (s *stack) editGroups(ctx context.Context, objects []*unstructured.Unstructured) error {
	var edited []*unstructured.Unstructured
	for _, edit := range edits {
		if err := s.runKubectl(ctx, edit.args...); err != nil {
			return err
		}
		for _, object := range objects {
			if object.GetKind() != "VmGroup" || object.GetName() != edit.group {
				continue
			}
			if err := unstructured.SetNestedField(object.Object, edit.value, "spec", edit.field); err != nil {
				return fmt.Errorf("expecting %s of VmGroup %q: %w", edit.field, edit.group, err)
			}
			edited = append(edited, object)
		}
	}
	return s.await(ctx, sampleTime, edited...)
}

// requested returns the number of servers and networks that the objects need.
func requested(all expectations, objects []*unstructured.Unstructured) counts {
	var t counts
	for _, object := range objects {
		switch object.GetKind() {
		case "VM":
			if all.of(object).status["vmId"] != absent {
				t.servers++
			}
		case "VmGroup":
			t.servers += int(membersOf(object))
		case "Network":
			t.networks++
		}
	}
	return t
}

// print prints commands of kubectl with their output.
func (s *stack) print(ctx context.Context, commands ...string) error {
	for _, command := range commands {
		output, err := s.kubectl(ctx, strings.Fields(command)...)
		if err != nil {
			return err
		}
		fmt.Printf("\n$ kubectl %s\n%s", command, output)
	}
	fmt.Println()
	return nil
}

// deleteAll deletes all objects that were applied and waits for the VMs, because a
// VmGroup is deleted before its members.
func (s *stack) deleteAll(ctx context.Context) error {
	for _, args := range [][]string{
		{"delete", "-f", s.on.refused(), "--timeout=60s"},
		{"delete", "vg", invalidGroupName, "--timeout=60s"},
		{"delete", "-k", s.on.samples(), "--timeout=60s"},
		{"wait", "--for=delete", "vms", "--all", "--timeout=60s"},
	} {
		if _, err := s.kubectl(ctx, args...); err != nil {
			return err
		}
		s.say("%s", commandLine(args))
	}
	return nil
}

// checkPermissions returns an error if the API server rejected a request of the
// operator: then the permissions of config/rbac are not sufficient.
func (s *stack) checkPermissions() error {
	log, err := os.ReadFile(s.manager.log)
	if err != nil {
		return fmt.Errorf("reading the operator's log: %w", err)
	}
	for line := range bytes.Lines(log) {
		if bytes.Contains(line, []byte("is forbidden: User ")) {
			return fmt.Errorf("the permissions of config/rbac are not sufficient: %s", bytes.TrimSpace(line))
		}
	}
	s.say("the permissions of config/rbac are sufficient")
	return nil
}
