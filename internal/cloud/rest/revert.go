package rest

import (
	"context"
	"net/http"

	"github.com/privatecloud/operator/internal/cloud"
)

// RevertServer reverts a server to a snapshot.
func (s *snapshotClient) RevertServer(ctx context.Context, req cloud.RevertServer) (cloud.Result, error) {
	op := "revert to snapshot " + quote(req.SnapshotID)
	if req.SnapshotID == "" {
		return cloud.Result{}, refuse(op, cloud.Rejected, "no id was given")
	}
	call, has, err := s.snapshotCall(ctx, http.MethodPost, op, req.ServerID)
	if err == nil {
		err = require(op, has, cloud.Revert)
	}
	if err != nil {
		return cloud.Result{}, err
	}
	call.route, call.path = call.route+"/{snapshotId}/revert", call.path+join(req.SnapshotID, "revert")
	if has.Has(cloud.Idempotency) {
		call.key = req.IdempotencyKey
	}
	switch {
	case !sendable(call.key):
		return cloud.Result{}, refuse(op, cloud.Rejected, "the idempotency key holds characters that cannot be sent")
	case req.Again && call.key == "":
		return cloud.Result{}, refuse(op, cloud.Unsupported, "this cloud has no idempotency keys, so a second revert could follow the first")
	}
	got, err := s.calls.do(ctx, call)
	if err != nil {
		return cloud.Result{}, err
	}
	result, err := resultOf(call, got, has, s.ignored)
	if err == nil && result.Server.ID != req.ServerID && (result.Operation == "" || result.Server.ID != "") {
		err = s.scrubber.ofAnotherID(call, got, "server", req.ServerID, result.Server.ID)
	}
	if err != nil {
		err.Uncertain = true
		return cloud.Result{}, err
	}
	return result, nil
}
