package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/privatecloud/operator/mockcloud"
)

func TestTheLedgerMustShowEachServerAndNetworkMadeOnceAndGone(t *testing.T) {
	mine := map[string]string{ownerLabel: "uid-1"}
	create := func(id string) mockcloud.LedgerEntry {
		return mockcloud.LedgerEntry{Op: mockcloud.OpCreate, ServerID: id, Name: "vmsample", Labels: mine}
	}
	asked := mockcloud.LedgerEntry{Op: mockcloud.OpDelete, ServerID: "a"}
	gone := mockcloud.LedgerEntry{Op: mockcloud.OpGone, ServerID: "a"}
	atOnce := mockcloud.LedgerEntry{Op: mockcloud.OpDelete, ServerID: "b", Final: true}
	laid := mockcloud.LedgerEntry{Op: mockcloud.OpCreateNetwork, NetworkID: "n", Name: "net"}
	lifted := mockcloud.LedgerEntry{Op: mockcloud.OpDeleteNetwork, NetworkID: "n"}
	for name, c := range map[string]struct {
		ledger []mockcloud.LedgerEntry
		// networks is how many are expected.
		networks int
		want     []string
	}{
		"a server whose slow deletion is complete is gone":    {ledger: []mockcloud.LedgerEntry{create("a"), asked, gone}},
		"a server that was deleted at once is gone":           {ledger: []mockcloud.LedgerEntry{create("b"), atOnce}},
		"a server whose deletion was only asked for is there": {ledger: []mockcloud.LedgerEntry{create("a"), asked}, want: []string{"server a (vmsample) is still there"}},
		"a node's server is nobody's, and may stay": {
			ledger: []mockcloud.LedgerEntry{{Op: mockcloud.OpCreate, By: mockcloud.ByAdmin, ServerID: "n", Name: "worker-1"}, create("b"), atOnce},
		},
		"a server that nobody made is missed, not overlooked": {want: []string{"0 servers were created, expected 1"}},
		"a second server after the first is one create too many": {
			ledger: []mockcloud.LedgerEntry{create("a"), asked, gone, create("b"), atOnce},
			want:   []string{"2 servers were created, expected 1"},
		},
		"two servers of one VM at a time are worse": {
			ledger: []mockcloud.LedgerEntry{create("a"), create("b"), asked, gone, atOnce},
			want:   []string{"2 servers were created, expected 1", "VM uid-1 had 2 servers at a time"},
		},
		"a server that does not say whose it is was made without care": {
			ledger: []mockcloud.LedgerEntry{{Op: mockcloud.OpCreate, ServerID: "b", Name: "vmsample"}, atOnce},
			want:   []string{"server b (vmsample) was made without the label " + ownerLabel},
		},
		"a network that was deleted is gone":                   {ledger: []mockcloud.LedgerEntry{laid, create("b"), atOnce, lifted}, networks: 1},
		"a network that is left is there":                      {ledger: []mockcloud.LedgerEntry{laid, create("b"), atOnce}, networks: 1, want: []string{"network n (net) is still there"}},
		"a network that nobody made is missed, not overlooked": {ledger: []mockcloud.LedgerEntry{create("b"), atOnce}, networks: 1, want: []string{"0 networks were created, expected 1"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, discrepancies(c.ledger, 1, c.networks)); diff != "" {
				t.Errorf("what is wrong with the ledger (-want +got):\n%s", diff)
			}
		})
	}
}
