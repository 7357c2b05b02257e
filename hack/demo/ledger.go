package main

import (
	"fmt"
	"maps"
	"slices"

	"github.com/privatecloud/operator/mockcloud"
)

// ownerLabel is the label by which the operator marks whose a server is.
const ownerLabel = "samplecontroller.k8s.io/uid"

// tally is a number of servers and networks.
type tally struct{ servers, networks int }

// discrepancies returns in what the ledger differs from one where so many were
// made and so many of them are left; nothing when it does not. The nodes'
// servers do not count: no client made them.
func discrepancies(ledger []mockcloud.LedgerEntry, made, left tally) []string {
	var wrong []string
	var created tally
	servers, networks := map[string]string{}, map[string]string{}
	for _, entry := range ledger {
		switch {
		case entry.By == mockcloud.ByAdmin:
		case entry.Op == mockcloud.OpCreate:
			created.servers++
			servers[entry.ServerID] = fmt.Sprintf("%s (%s)", entry.ServerID, entry.Name)
			if entry.Labels[ownerLabel] == "" {
				wrong = append(wrong, fmt.Sprintf("server %s (%s) was made without the label %s", entry.ServerID, entry.Name, ownerLabel))
			}
		case entry.Op == mockcloud.OpGone, entry.Op == mockcloud.OpDelete && entry.Final:
			delete(servers, entry.ServerID)
		case entry.Op == mockcloud.OpCreateNetwork:
			created.networks++
			networks[entry.NetworkID] = fmt.Sprintf("%s (%s)", entry.NetworkID, entry.Name)
		case entry.Op == mockcloud.OpDeleteNetwork:
			delete(networks, entry.NetworkID)
		}
	}
	if created != made {
		wrong = append(wrong, fmt.Sprintf("%d servers and %d networks were created, expected %d and %d",
			created.servers, created.networks, made.servers, made.networks))
	}
	if is := (tally{len(servers), len(networks)}); is != left {
		wrong = append(wrong, fmt.Sprintf("%d servers and %d networks are there, expected %d and %d: %v %v", is.servers, is.networks,
			left.servers, left.networks, slices.Sorted(maps.Values(servers)), slices.Sorted(maps.Values(networks))))
	}
	for owner, n := range mockcloud.MostAlive(ledger, ownerLabel) {
		if n > 1 {
			wrong = append(wrong, fmt.Sprintf("VM %s had %d servers at a time", owner, n))
		}
	}
	slices.Sort(wrong)
	return wrong
}
