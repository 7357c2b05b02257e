package vm

import (
	"fmt"
	"reflect"
	"slices"
	"time"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/external"
	"github.com/privatecloud/operator/internal/inventory"
)

// pick returns one of the numbers 0 to n-1.
type pick func(n int) int

func (p pick) bool() bool { return p(2) == 1 }

func one[T any](p pick, values ...T) T { return values[p(len(values))] }

// exhaust calls body once for each possible sequence of picks and returns the number of calls.
func exhaust(body func(pick)) int {
	var digits, limits []int
	for n := 1; ; n++ {
		at := 0
		body(func(limit int) int {
			if at == len(digits) {
				digits, limits = append(digits, 0), append(limits, limit)
			}
			at++
			return digits[at-1]
		})
		last := at - 1
		for last >= 0 && digits[last]+1 == limits[last] {
			last--
		}
		if last < 0 {
			return n
		}
		digits, limits = digits[:last+1], limits[:last+1]
		digits[last]++
	}
}

// situation picks a VM and an observation that Observe can return.
func situation(p pick) (*pcapi.VM, *observation) {
	vm := vmWith()
	obs := obsWith(one(p, capabilitySets...))
	deleting := p.bool()
	if deleting {
		deleted(vm)
		vm.Spec.DeletionPolicy = one(p, pcapi.DeletionPolicyDelete, pcapi.DeletionPolicyOrphan)
	}
	switch p(3) {
	case 1:
		unavailable(obs)
	case 2:
		denied(obs)
		if obs.CloudMissing = deleting; deleting {
			unavailable(obs)
		}
	}
	if p.bool() {
		situationKnown(p, vm, obs)
	} else {
		situationUnrecorded(p, vm, obs)
	}
	situationOperation(p, vm, obs)
	return vm, obs
}

// situationKnown picks situations in which the id of the server is recorded or to be imported.
func situationKnown(p pick, vm *pcapi.VM, obs *observation) {
	switch p(3) {
	case 0:
		recorded(vm)
	case 1:
		importing(vm)
	default:
		recorded(vm)
		importing(vm)
	}
	if p.bool() {
		observing(vm)
	}
	if !vm.DeletionTimestamp.IsZero() || p.bool() {
		obs.Claimed = "web"
	}
	labels := obs.Capabilities().Has(cloud.Labels)
	if vm.Status.VMID == "" {
		obs.Moved = obs.Claimed != "" && p.bool()
	}
	if (vm.Status.VMID == "" || !labels) && p.bool() {
		obs.rival = errRival
	}
	if vm.Status.VMID == "" && p.bool() {
		obs.importErr = errOwned
	}
	switch p(4) {
	case 0:
	case 1:
		obs.Absent, obs.Gone = true, true
	case 2:
		obs.Absent = true
	default:
		s := serverWith(inState(one(p, cloud.StateActive, cloud.StateStopped, cloud.StateSuspended, cloud.StateBuilding, cloud.StateDeleting, cloud.StateError, cloud.StateUnknown)),
			withName(one(p, "web", "db")), withCores(one(p, 2, 1)))
		obs.Resource, obs.How, obs.Owned = &s, pcapi.CreatedReason, true
		if obs.Capabilities().Has(cloud.Suspend) {
			vm.Spec.PowerState = one(p, pcapi.PowerOn, pcapi.PowerOff, pcapi.PowerSuspended)
		}
		if !labels {
			return
		}
		switch p(6) {
		case 0:
			if p.bool() {
				withTags("env", "prod")(vm)
			}
		case 1:
			obs.Duplicates = []cloud.Server{serverWith(withID("s2"))}
		case 2:
			obs.Owned, s.Labels = false, map[string]string{inventory.UIDLabel: "uid-other", inventory.ClusterLabel: "cluster"}
		case 3:
			obs.Owned, obs.Foreign, s.Labels = false, true, map[string]string{inventory.UIDLabel: "uid-other", inventory.ClusterLabel: "other"}
		case 4:
			obs.Owned, obs.unlabelling, s.Labels = false, true, map[string]string{inventory.UIDLabel: string(vm.UID)}
		default:
			obs.Owned, s.Labels = false, nil
		}
	}
}

// situationUnrecorded picks situations in which no id is recorded but a create may have been sent.
func situationUnrecorded(p pick, vm *pcapi.VM, obs *observation) {
	labels, unique := obs.Capabilities().Has(cloud.Labels), obs.Capabilities().Has(cloud.UniqueNames)
	if vm.DeletionTimestamp.IsZero() {
		obs.nameErr = one[error](p, nil, errProhibited)
		if p.bool() {
			if !labels && unique && p.bool() {
				obs.rival = errRival
			}
			return
		}
	}
	obs.Claimed = one(p, "web", "former")
	obs.ClaimProved = p.bool()
	obs.Looked, obs.Moved = p.bool(), p.bool()
	if labels && obs.Capabilities().Has(cloud.Idempotency) && obs.Capabilities().Has(cloud.Resize) {
		switch p(3) {
		case 1:
			obs.New = true
		case 2:
			nameChecked(vm)
		}
	}
	if p.bool() {
		detached(obs)
	}
	if p.bool() {
		obs.SettleTimeLeft = time.Minute
	}
	var servers []cloud.Server
	switch p(3) {
	case 1:
		servers = []cloud.Server{serverWith(inState(one(p, cloud.StateActive, cloud.StateBuilding, cloud.StateDeleting)), withName(obs.Claimed), withCores(one(p, 2, 1)))}
	case 2:
		servers = []cloud.Server{serverWith(withName(obs.Claimed)), serverWith(withID("s2"), withName(obs.Claimed), inState(one(p, cloud.StateActive, cloud.StateDeleting)))}
	}
	switch {
	case len(servers) > 0 && (labels || p.bool()):
		obs.Proof, obs.Candidates = external.OwnerProof, servers
	case !labels && obs.Looked:
		obs.Candidates = servers
		if unique {
			obs.Proof = external.NameProof
		}
		if unique && p.bool() {
			obs.rival, obs.Candidates = errRival, nil
		}
	}
}

// cloneObservation returns a copy of obs that shares no servers with it.
func cloneObservation(obs *observation) *observation {
	clone := *obs
	servers := func(list []cloud.Server) []cloud.Server {
		list = slices.Clone(list)
		for i := range list {
			list[i] = list[i].Clone()
		}
		return list
	}
	clone.Candidates, clone.Duplicates = servers(obs.Candidates), servers(obs.Duplicates)
	if obs.Resource != nil {
		s := obs.Resource.Clone()
		clone.Resource = &s
	}
	return &clone
}

func sameObservation(a, b *observation) bool {
	return reflect.DeepEqual(a, b) //nolint:govet // a clone holds the same error values
}

// describeSituation formats a situation for failure messages.
func describeSituation(vm *pcapi.VM, obs *observation) string {
	return fmt.Sprintf("vmId %q, import %v, %s, %s, deleted %t\ncaps %v, away %q, denied %v\nserver %+v, gone %t, owned %t, foreign %t, moved %t, duplicates %d\n"+
		"claimed %q, looked %t, settleTimeLeft %v, proof %d, candidates %+v, nameErr %v, rival %v\n"+
		"operation %+v, working %t, fault %v of %s, only %t, deleted %t",
		vm.Status.VMID, vm.Spec.Import, vm.Spec.DeletionPolicy, vm.Spec.ManagementPolicy, !vm.DeletionTimestamp.IsZero(),
		obs.Capabilities(), obs.View.Unavailable, obs.Denied, obs.Resource, obs.Gone, obs.Owned, obs.Foreign, obs.Moved, len(obs.Duplicates),
		obs.Claimed, obs.Looked, obs.SettleTimeLeft, obs.Proof, obs.Candidates, obs.nameErr, obs.rival,
		obs.Operation, obs.Working, obs.Fault, obs.FaultOf, obs.FaultOnly, obs.Deleted)
}
