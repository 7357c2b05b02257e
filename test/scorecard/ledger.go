package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/privatecloud/operator/mockcloud"
)

const (
	// ownerLabel is the label of a server that has the UID of its VM.
	ownerLabel = "samplecontroller.k8s.io/uid"
	// ledgerBytes is the maximum size of a ledger.
	ledgerBytes = 64 << 20
)

// ledger reads the ledger of the mock cloud after the entry since.
type ledger struct {
	endpoint string
	since    int
}

func (l *ledger) read(ctx context.Context) ([]mockcloud.LedgerEntry, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	url := fmt.Sprintf("%s/ledger?since=%d", strings.TrimRight(l.endpoint, "/"), l.since)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, fmt.Errorf("read the ledger: %w", err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("read the ledger: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("read the ledger: GET %s answered %s", url, response.Status)
	}
	var entries []mockcloud.LedgerEntry
	if err := json.NewDecoder(io.LimitReader(response.Body, ledgerBytes)).Decode(&entries); err != nil {
		return nil, fmt.Errorf("read the ledger: %w", err)
	}
	return entries, nil
}

// checkEntries returns an error unless exactly one server was created for the
// owner and deleted again, and no server without an owner was changed. Entries of
// other owners are ignored.
func checkEntries(entries []mockcloud.LedgerEntry, owner, server string) error {
	var wrong []error
	var created, gone int
	for _, entry := range entries {
		ours := entry.Labels[ownerLabel] == owner || entry.ServerID == server
		switch {
		case ours && entry.Op == mockcloud.OpCreate:
			created++
			if entry.ServerID != server {
				wrong = append(wrong, fmt.Errorf("server %s was created for the VM, whose vmId is %s", entry.ServerID, server))
			}
		case ours && (entry.Op == mockcloud.OpGone || entry.Op == mockcloud.OpDelete && entry.Final):
			gone++
		case !ours && entry.By == mockcloud.ByClient && entry.ServerID != "" && entry.Labels[ownerLabel] == "":
			wrong = append(wrong, fmt.Errorf("%s of server %s (%s), which belongs to no VM", entry.Op, entry.ServerID, entry.Name))
		}
	}
	if created != 1 || gone != 1 {
		wrong = append(wrong, fmt.Errorf("%d servers were created for the VM and %d were deleted, want one of each", created, gone))
	}
	return errors.Join(wrong...)
}
