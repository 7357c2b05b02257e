package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/privatecloud/operator/mockcloud"
)

const (
	mockName   = "mock"
	prohibited = samples + "/prohibited"
)

// mock is the mock cloud.
type mock struct{}

func (mock) title() string          { return "mock cloud" }
func (mock) program() string        { return "mockcloud" }
func (mock) samples() string        { return samples }
func (mock) refused() string        { return prohibited }
func (mock) expected() expectations { return expected }
func (mock) guide() string          { return mockGuide }

func (mock) args() []string {
	return []string{
		"--addr=127.0.0.1:0", "--admin-bind-address=127.0.0.1:0", "--build-time=3s", "--delete-time=2s", "--utilisation=sine:3m",
		"--host=esxi-1:true:399:zone-a", "--host=esxi-2:false:720:zone-b", "--prohibited-template=" + prohibitedTemplate,
	}
}

func (mock) addServers(ctx context.Context, s *stack) error {
	for name, host := range map[string]string{"worker-1": "esxi-1", "worker-2": "esxi-2"} {
		server := mockcloud.Server{Name: name, Host: host, CPU: 4, Memory: 16}
		if err := s.callAdmin(ctx, http.MethodPost, "/admin/servers", server, nil); err != nil {
			return fmt.Errorf("creating server %q: %w", name, err)
		}
	}
	return nil
}

func (mock) managerArgs(s *stack) []string { return []string{"--default-cloud-endpoint=" + s.cloudURL} }

// connect does nothing: the operator creates the Cloud itself.
func (mock) connect(context.Context, *stack) error { return nil }

// showRefusal applies a VM whose name the cloud prohibits. The webhook rejects it.
// Without the webhook, as when no operator runs, it is stored, and the VM reports the
// prohibition in its conditions.
func (mock) showRefusal(ctx context.Context, s *stack) error {
	var refusal string
	err := poll(ctx, func(ctx context.Context) bool {
		_, err := s.kubectl(ctx, "apply", "-f", prohibited, "--dry-run=server")
		refusal = fmt.Sprint(err)
		return strings.Contains(refusal, "is prohibited")
	})
	if err != nil {
		return fmt.Errorf("waiting for %s to be rejected: %w\n%s", prohibited, err, refusal)
	}
	output, err := s.kubectl(ctx, "apply", "-f", prohibited)
	if err == nil {
		return fmt.Errorf("%s was stored, although the cloud prohibits the name: %s", prohibited, output)
	}
	s.say("kubectl apply -f %s", prohibited)
	_, refusal, _ = strings.Cut(err.Error(), "\n")
	s.say("  %s", refusal)

	if err := s.webhook.Unregister(ctx, webhookName); err != nil {
		return err
	}
	// The API server observes the change with a delay.
	err = poll(ctx, func(ctx context.Context) bool {
		output, err = s.kubectl(ctx, "apply", "-f", prohibited)
		return err == nil
	})
	if err != nil {
		return fmt.Errorf("waiting for %s to be stored: %w", prohibited, err)
	}
	s.say("the same again, while the name check webhook is not registered")
	s.say("  %s", bytes.TrimSpace(output))
	return s.webhook.Register(ctx, webhookName, nil)
}

func (mock) changeByHand(context.Context, *stack) (int, error) { return 0, nil }

// check compares the cloud's ledger with the expected numbers.
func (mock) check(ctx context.Context, s *stack, created, left counts) error {
	var ledger []mockcloud.LedgerEntry
	if err := s.callAdmin(ctx, http.MethodGet, "/ledger", nil, &ledger); err != nil {
		return err
	}
	if wrong := discrepancies(ledger, created, left); len(wrong) > 0 {
		return fmt.Errorf("the cloud's ledger is not as expected:\n  %s", strings.Join(wrong, "\n  "))
	}
	return nil
}

const mockGuide = `
In a browser, the servers of the cloud and switches for its faults: %[2]s/

In a second terminal:

  export KUBECONFIG=%[1]s ADMIN=%[2]s%[3]s

  kubectl get clouds,networks,vms,vg,gpu
  kubectl wait --for=condition=Ready vm/sample
  kubectl events
  kubectl explain vm.spec.vmname
  # the kubectl plugin: what an object waits for, CPU use, and more
  make bin/kubectl-privatecloud && bin/kubectl-privatecloud why vg/vg-2
  # a VM whose name the cloud prohibits is not stored
  sed s/taboo/another/ config/samples/prohibited/*.yaml | kubectl apply -f -
  # taboo was stored while the webhook was not registered: correct its name
  kubectl patch vm taboo --type=merge -p '{"spec":{"vmname":"allowed"}}'
  # five VMs instead of three
  kubectl scale --replicas=5 vmgroup vmgroup-sample
  kubectl get vms -l samplecontroller.k8s.io/group=vmgroup-sample
  # the cloud prohibits the template of vg-2: correct it
  kubectl patch vg vg-2 --type merge -p '{"spec":{"template":"vm-operator-template"}}'
  # why this node was chosen and the other was not; no node is suitable while this one is cordoned
  kubectl get gpu plain -o jsonpath='{range .status.candidates[*]}{.nodeName}: {.message}{"\n"}{end}'
  kubectl cordon worker-2
  kubectl get gpu
  kubectl uncordon worker-2
  # a network is not deleted while a VM uses it, with any of its interfaces
  kubectl delete network example-network --wait=false
  kubectl delete vm networked router bastion
  # resize a VM; power on another
  kubectl patch vm web --type=merge -p '{"spec":{"cpu":4,"memory":8}}'
  kubectl patch vm standby --type=merge -p '{"spec":{"powerState":"On"}}'
  # this returns once the server is deleted in the cloud
  kubectl delete vm sample
  # delete a server without the operator: its VM becomes Lost
  curl -X DELETE $ADMIN/admin/servers/$(kubectl get vm database -o jsonpath={.status.vmId})
  # the cloud is unavailable, and available again
  curl $ADMIN/faults -d '{"id":"outage","match":{"path":"/**"},"status":503}'
  curl -X DELETE $ADMIN/faults/outage
  # the cloud shows changes late and mistypes optional fields, and is as documented again
  curl -X PATCH $ADMIN/admin/quirks -d '{"readLag":"5s","wrongTypes":true}'
  curl -X DELETE $ADMIN/admin/quirks

Ctrl-C ends the demo.

`
