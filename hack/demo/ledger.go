package main

import (
	"fmt"
	"maps"
	"slices"

	"github.com/privatecloud/operator/mockcloud"
)

// ownerLabel is the label of a server that has the UID of its VM.
const ownerLabel = "samplecontroller.k8s.io/uid"

// counts is a number of servers and networks.
type counts struct{ servers, networks int }

// discrepancies returns the differences between the ledger and the expected
// numbers of created and remaining servers and networks, sorted, and nil if there
// are none. Servers of Nodes do not count, because no client created them.
func discrepancies(ledger []mockcloud.LedgerEntry, wantCreated, wantLeft counts) []string {
	var wrong []string
	var created counts
	servers, networks := map[string]string{}, map[string]string{}
	for _, entry := range ledger {
		switch {
		case entry.By == mockcloud.ByAdmin:
		case entry.Op == mockcloud.OpCreate:
			created.servers++
			servers[entry.ServerID] = fmt.Sprintf("%s (%s)", entry.ServerID, entry.Name)
			if entry.Labels[ownerLabel] == "" {
				wrong = append(wrong, fmt.Sprintf("server %s (%s) was created without the label %s", entry.ServerID, entry.Name, ownerLabel))
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
	if created != wantCreated {
		wrong = append(wrong, fmt.Sprintf("%d servers and %d networks were created, expected %d and %d",
			created.servers, created.networks, wantCreated.servers, wantCreated.networks))
	}
	if is := (counts{len(servers), len(networks)}); is != wantLeft {
		wrong = append(wrong, fmt.Sprintf("%d servers and %d networks exist, expected %d and %d: %v %v", is.servers, is.networks,
			wantLeft.servers, wantLeft.networks, slices.Sorted(maps.Values(servers)), slices.Sorted(maps.Values(networks))))
	}
	for owner, n := range mockcloud.MostAlive(ledger, ownerLabel) {
		if n > 1 {
			wrong = append(wrong, fmt.Sprintf("VM %s had %d servers at the same time", owner, n))
		}
	}
	slices.Sort(wrong)
	return wrong
}
