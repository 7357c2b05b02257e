package main

import (
	"fmt"
	"os/exec"
	"path/filepath"
)

const guideText = `
In a second terminal:

  export KUBECONFIG=%[1]s ADMIN=%[2]s%[3]s

  kubectl get clouds,networks,vms,vg,gpu
  kubectl wait --for=condition=Ready vm/sample
  kubectl events
  kubectl explain vm.spec.vmname
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
  # a network is not deleted while a VM uses it
  kubectl delete network example-network --wait=false
  kubectl delete vm networked
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

// guide prints commands to try in a second terminal.
func (s *stack) guide() {
	path := ""
	if _, err := exec.LookPath("kubectl"); err != nil {
		path = " PATH=" + filepath.Dir(s.kubectlPath()) + ":$PATH"
	}
	fmt.Printf(guideText, s.kubeconfig(), s.adminURL, path)
}
