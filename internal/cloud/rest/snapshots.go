package rest

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/privatecloud/operator/internal/cloud"
)

// snapshotSize estimates the memory that a snapshot takes beside its texts, in bytes.
const snapshotSize = 128

// wireCreateSnapshot is the cloud's JSON of a new snapshot.
type wireCreateSnapshot struct {
	Name           string `json:"name"`
	Description    string `json:"description,omitempty"`
	Memory         bool   `json:"memory,omitempty"`
	QuiesceSeconds int64  `json:"quiesceSeconds,omitempty"`
}

// snapshotClient reads, takes and deletes snapshots of servers, and reverts servers to them.
type snapshotClient struct {
	calls        *calls
	capabilities *capabilityClient
	ignored      *ignored
	scrubber     *scrubber
}

// ListSnapshots returns all snapshots of a server: this listing has no pages.
func (s *snapshotClient) ListSnapshots(ctx context.Context, serverID string) ([]cloud.Snapshot, error) {
	op := "list snapshots of server " + quote(serverID)
	call, _, err := s.snapshotCall(ctx, http.MethodGet, op, serverID)
	if err != nil {
		return nil, err
	}
	call.limit = maxPage
	var snapshots []cloud.Snapshot
	call.stream = func(got *answer, in *stream) (err *cloud.Error) {
		snapshots, err = decodeSnapshots(call, got, in, s.ignored)
		return err
	}
	if _, err := s.calls.do(ctx, call); err != nil {
		return nil, err
	}
	return snapshots, nil
}

// CreateSnapshot creates a snapshot.
func (s *snapshotClient) CreateSnapshot(ctx context.Context, req cloud.CreateSnapshot) (cloud.Snapshot, error) {
	op := "create snapshot " + quote(req.Name)
	if err := checkName(op, req.Name); err != nil {
		return cloud.Snapshot{}, err
	}
	call, has, err := s.snapshotCall(ctx, http.MethodPost, op, req.ServerID)
	if err != nil {
		return cloud.Snapshot{}, err
	}
	call.body = encode(wireCreateSnapshot{
		Name: req.Name, Description: req.Description, Memory: req.Memory, QuiesceSeconds: int64(req.Quiesce / time.Second),
	})
	if has.Has(cloud.Idempotency) {
		call.key = req.IdempotencyKey
	}
	if !sendable(call.key) {
		return cloud.Snapshot{}, refuse(op, cloud.Rejected, "the idempotency key holds characters that cannot be sent")
	}
	got, err := s.calls.do(ctx, call)
	if err != nil {
		return cloud.Snapshot{}, err
	}
	snapshot, err := decodeOne(call, got, s.ignored, (*reader).snapshot)
	return snapshot, asError(err)
}

// DeleteSnapshot deletes a snapshot of a server.
func (s *snapshotClient) DeleteSnapshot(ctx context.Context, serverID, id string) error {
	op := "delete snapshot " + quote(id)
	if id == "" {
		return refuse(op, cloud.Rejected, "no id was given")
	}
	call, _, err := s.snapshotCall(ctx, http.MethodDelete, op, serverID)
	if err != nil {
		return err
	}
	call.route, call.path, call.limit = call.route+"/{snapshotId}", call.path+join(id), 0
	_, err = s.calls.do(ctx, call)
	return asError(err)
}

// snapshotCall is a call about the snapshots of a server, and returns what the cloud can do.
func (s *snapshotClient) snapshotCall(ctx context.Context, method, op, serverID string) (*call, cloud.Capabilities, *cloud.Error) {
	if serverID == "" {
		return nil, nil, refuse(op, cloud.Rejected, "no id of a server was given")
	}
	has, err := s.capabilities.neededBy(ctx, op)
	if err == nil {
		err = require(op, has, cloud.Snapshots)
	}
	if err != nil {
		return nil, nil, err
	}
	return &call{
		about: aboutSnapshot, method: method, route: "/servers/{id}/snapshots", path: join("servers", serverID, "snapshots"), limit: maxBody, op: op,
	}, has, nil
}

// decodeSnapshots reads a listing. One bad snapshot spoils it, since a snapshot left
// out would look gone.
func decodeSnapshots(call *call, got *answer, in *stream, into *ignored) ([]cloud.Snapshot, *cloud.Error) {
	r, snapshots := newReader(into), []cloud.Snapshot{}
	_, err := (&list{noun: "snapshots", field: "snapshots", object: true, element: func(n int, value []byte) error {
		snapshot, err := r.snapshot(value)
		if err != nil {
			return unusable(fmt.Sprintf("snapshot %d of the listing: %s", n, got.elementError(err, snapshot.ID)))
		}
		snapshots = append(snapshots, snapshot)
		return r.kept.add(snapshotSize+len(snapshot.ID)+len(snapshot.Name), maxSmall)
	}}).read(call, got, in)
	if err != nil {
		return nil, err
	}
	return snapshots, nil
}

// snapshot reads a snapshot. Only id and name are indispensable.
func (r *reader) snapshot(data []byte) (s cloud.Snapshot, err error) {
	s.ID, s.Name, err = r.named(data, func(field, value []byte) {
		switch string(field) {
		case "sizeBytes":
			size, err := strconv.ParseInt(string(value), 10, 64)
			if (err != nil || size < 0) && !isNull(value) {
				r.ignored.add("sizeBytes", "not a positive integer")
			}
			s.SizeBytes = max(0, size)
		case "createdAt":
			s.CreatedAt = r.time("createdAt", value)
		}
	})
	return s, err
}
