package main

import (
	"fmt"
	"os/exec"
	"path/filepath"
)

const guideText = `
In a second terminal:

  export KUBECONFIG=%[1]s CLOUD=%[2]s%[3]s

  kubectl get clouds,networks,vms,vg,gpu
  kubectl wait --for=condition=Ready vm/sample
  kubectl events
  kubectl explain vm.spec.vmname
  # a VM whose name the cloud prohibits is not stored
  sed s/taboo/another/ config/samples/prohibited/*.yaml | kubectl apply -f -
  # taboo was stored while names were not checked: correct it
  kubectl patch vm taboo --type=merge -p '{"spec":{"vmname":"allowed"}}'
  # five VMs in place of three
  kubectl scale --replicas=5 vmgroup vmgroup-sample
  kubectl get vms -l samplecontroller.k8s.io/group=vmgroup-sample
  # the cloud prohibits the template of vg-2: correct it
  kubectl patch vg vg-2 --type merge -p '{"spec":{"template":"vm-operator-template"}}'
  # why this node, and why not the other; cordoned, none suits until it is uncordoned
  kubectl get gpu plain -o jsonpath='{range .status.candidates[*]}{.nodeName}: {.message}{"\n"}{end}'
  kubectl cordon worker-2
  kubectl get gpu
  kubectl uncordon worker-2
  # a network stays while a VM is on it
  kubectl delete network example-network --wait=false
  kubectl delete vm networked
  # resize a VM; switch one on
  kubectl patch vm web --type=merge -p '{"spec":{"cpu":4,"memory":8}}'
  kubectl patch vm standby --type=merge -p '{"spec":{"powerState":"On"}}'
  # this returns once the cloud's server is gone
  kubectl delete vm sample
  # a server deleted behind the operator's back: its VM is Lost
  curl -X DELETE $CLOUD/admin/servers/$(kubectl get vm database -o jsonpath={.status.vmId})
  # the cloud goes away, and comes back
  curl $CLOUD/faults -d '{"id":"outage","match":{"path":"/**"},"status":503}'
  curl -X DELETE $CLOUD/faults/outage

Ctrl-C ends the demo.

`

// guide says what to try from a second terminal.
func (s *stack) guide() {
	path := ""
	if _, err := exec.LookPath("kubectl"); err != nil {
		path = " PATH=" + filepath.Dir(s.kubectlPath()) + ":$PATH"
	}
	fmt.Printf(guideText, s.kubeconfig(), s.cloudURL, path)
}
