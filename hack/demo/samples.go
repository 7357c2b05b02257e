package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/mockcloud"
)

const (
	samples = "config/samples"
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
	output, err := s.kubectl(ctx, "apply", "-k", samples)
	if err != nil {
		return err
	}
	s.say("kubectl apply -k %s", samples)
	for line := range bytes.Lines(output) {
		s.say("  %s", bytes.TrimSpace(line))
	}
	return nil
}

// prove waits until every sample has become what it is to be, shows them, and
// sees to it that the cloud is empty after their deletion.
func (s *stack) prove(ctx context.Context) error {
	objects, err := s.built(ctx, samples)
	if err != nil {
		return err
	}
	output, err := s.kubectl(ctx, "get", "-f", prohibited, "-o", "yaml")
	if err != nil {
		return err
	}
	stalled, err := decode(output)
	if err != nil {
		return err
	}
	objects = append(objects, stalled...)
	if err := s.await(ctx, sampleTime, objects...); err != nil {
		return err
	}
	for _, args := range [][]string{{"get", "clouds"}, {"get", "networks"}, {"get", "vms"}, {"get", "vmgroups"}, {"get", "gpuinfos"}, {"events"}} {
		output, err := s.kubectl(ctx, args...)
		if err != nil {
			return err
		}
		fmt.Printf("\n$ kubectl %s\n%s", strings.Join(args, " "), output)
	}
	fmt.Println()

	for _, args := range [][]string{{"-f", prohibited}, {"-k", samples}} {
		if _, err := s.kubectl(ctx, append([]string{"delete", "--timeout=60s"}, args...)...); err != nil {
			return err
		}
	}
	s.say("kubectl delete -k %s", samples)
	var ledger []mockcloud.LedgerEntry
	if err := s.askCloud(ctx, "/ledger", &ledger); err != nil {
		return err
	}
	if wrong := discrepancies(ledger, meantToExist(objects, "VM", "vmId"), meantToExist(objects, "Network", "networkId")); len(wrong) > 0 {
		return fmt.Errorf("the cloud's ledger is not as expected after the samples' deletion:\n  %s", strings.Join(wrong, "\n  "))
	}
	s.say("the cloud's ledger: each server and network was created once, and all are gone")
	return s.refusals()
}

// meantToExist counts the objects of a kind that something in the cloud is
// expected of, by the field of the status that tells its id.
func meantToExist(objects []*unstructured.Unstructured, kind, id string) int {
	n := 0
	for _, object := range objects {
		if object.GetKind() == kind && expectationOf(object).status[id] != nothing {
			n++
		}
	}
	return n
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
