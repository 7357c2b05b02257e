package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/mockcloud"
)

// edits are what the tour does to groups that have become what they were to be.
var edits = []struct {
	args         []string
	group, field string
	value        any
}{
	{[]string{"scale", "--replicas=5", "vmgroup", "vmgroup-sample"}, "vmgroup-sample", "replicas", int64(5)},
	{
		[]string{"patch", "vg", mistakenGroup, "--type", "merge", "-p", `{"spec":{"template":"vm-operator-template"}}`},
		mistakenGroup, "template", "vm-operator-template",
	},
}

// prove waits until every sample has become what it is to be, shows them, edits
// groups, and sees to it that the cloud is empty after all are deleted.
func (s *stack) prove(ctx context.Context) error {
	objects, err := s.applied(ctx)
	if err != nil {
		return err
	}
	if err := s.await(ctx, sampleTime, objects...); err != nil {
		return err
	}
	if err := s.judge(ctx, asked(objects), asked(objects)); err != nil {
		return err
	}
	if err := s.print(ctx, "get clouds", "get networks", "get vms", "get vg", "get gpu"); err != nil {
		return err
	}
	if err := s.edit(ctx, objects); err != nil {
		return err
	}
	if err := s.judge(ctx, asked(objects), asked(objects)); err != nil {
		return err
	}
	if err := s.print(ctx, "get vg", "get vms -l "+v1alpha1.GroupLabel+"=vmgroup-sample", "events --for vmgroup/vmgroup-sample"); err != nil {
		return err
	}
	if err := s.clear(ctx); err != nil {
		return err
	}
	if err := s.judge(ctx, asked(objects), tally{}); err != nil {
		return err
	}
	s.say("the cloud's ledger: each of %d servers was created once, as was each network, and all are gone", asked(objects).servers)
	return s.refusals()
}

// applied returns what was applied until now, as it was asked for.
func (s *stack) applied(ctx context.Context) ([]*unstructured.Unstructured, error) {
	objects, err := s.built(ctx, samples)
	if err != nil {
		return nil, err
	}
	output, err := s.kubectl(ctx, "get", "-f", prohibited, "-o", "yaml")
	if err != nil {
		return nil, err
	}
	stalled, err := decode(output)
	if err != nil {
		return nil, err
	}
	mistaken, err := s.mistaken()
	if err != nil {
		return nil, err
	}
	return append(append(objects, stalled...), mistaken), nil
}

// edit edits groups, in the cluster and in objects, and waits for what becomes of it.
func (s *stack) edit(ctx context.Context, objects []*unstructured.Unstructured) error {
	var edited []*unstructured.Unstructured
	for _, edit := range edits {
		if err := s.does(ctx, edit.args...); err != nil {
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

// asked counts what the objects ask the cloud for.
func asked(objects []*unstructured.Unstructured) tally {
	var t tally
	for _, object := range objects {
		switch object.GetKind() {
		case "VM":
			if expectationOf(object).status["vmId"] != nothing {
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

// print shows what kubectl answers.
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

// clear deletes all that was applied, and returns once the members of groups
// are gone, too: their groups do not wait for them.
func (s *stack) clear(ctx context.Context) error {
	for _, args := range [][]string{
		{"delete", "-f", prohibited, "--timeout=60s"},
		{"delete", "vg", mistakenGroup, "--timeout=60s"},
		{"delete", "-k", samples, "--timeout=60s"},
		{"wait", "--for=delete", "vms", "--all", "--timeout=60s"},
	} {
		if _, err := s.kubectl(ctx, args...); err != nil {
			return err
		}
		s.say("%s", commandLine(args))
	}
	return nil
}

// judge compares the cloud's ledger with what must have been made, and what
// must be left of it.
func (s *stack) judge(ctx context.Context, made, left tally) error {
	var ledger []mockcloud.LedgerEntry
	if err := s.askCloud(ctx, "/ledger", &ledger); err != nil {
		return err
	}
	if wrong := discrepancies(ledger, made, left); len(wrong) > 0 {
		return fmt.Errorf("the cloud's ledger is not as expected:\n  %s", strings.Join(wrong, "\n  "))
	}
	return nil
}

// askCloud reads what the mock cloud tells outside of its REST API.
func (s *stack) askCloud(ctx context.Context, path string, into any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.cloudURL+path, nil)
	if err != nil {
		return fmt.Errorf("asking the mock cloud: %w", err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("asking the mock cloud: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("the mock cloud answered GET %s with %s", path, response.Status)
	}
	if err := json.NewDecoder(response.Body).Decode(into); err != nil {
		return fmt.Errorf("reading the mock cloud's %s: %w", path, err)
	}
	return nil
}

// refusals finds out whether the API server refused the operator anything:
// then the RBAC of config/rbac is not enough.
func (s *stack) refusals() error {
	log, err := os.ReadFile(s.manager.log)
	if err != nil {
		return fmt.Errorf("reading the operator's log: %w", err)
	}
	for line := range bytes.Lines(log) {
		if bytes.Contains(line, []byte("is forbidden: User ")) {
			return fmt.Errorf("the rights of config/rbac do not suffice: %s", bytes.TrimSpace(line))
		}
	}
	s.say("the rights of config/rbac sufficed")
	return nil
}
