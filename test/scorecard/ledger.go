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
	// ownerLabel is the label by which the operator marks the owner of a server.
	ownerLabel = "samplecontroller.k8s.io/uid"
	// ledgerBytes bounds what is read of a ledger.
	ledgerBytes = 64 << 20
)

// ledger is the mock cloud's record of what took effect, after the entry since.
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

// verify returns how the entries differ from one server that was created for an
// owner and is deleted, without changes of foreign servers. Servers of other owners
// may have been created and deleted at the same time.
func verify(entries []mockcloud.LedgerEntry, owner, server string) error {
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
		wrong = append(wrong, fmt.Errorf("%d servers were created for the VM and %d are gone, want one of each", created, gone))
	}
	return errors.Join(wrong...)
}
