package rest

import (
	"context"
	"net/http"

	"github.com/privatecloud/operator/internal/cloud"
)

// UpdateServer changes a server in place.
func (s *serverClient) UpdateServer(ctx context.Context, id string, update cloud.Update) (cloud.Result, error) {
	call, err := serverCall(http.MethodPatch, id, "update server ")
	if err != nil {
		return cloud.Result{}, err
	}
	if len(update) == 0 {
		return cloud.Result{}, refuse(call.op, cloud.Rejected, "nothing to change was given")
	}
	has, err := s.capabilities.neededBy(ctx, call.op)
	if err != nil {
		return cloud.Result{}, err
	}
	if err := require(call.op, has, update.Needs()...); err != nil {
		return cloud.Result{}, err
	}
	wire, err := encodeUpdate(call.op, update)
	if err != nil {
		return cloud.Result{}, err
	}
	call.body = encode(wire)
	got, err := s.calls.do(ctx, call)
	if err != nil {
		return cloud.Result{}, err
	}
	result, err := resultOf(call, got, has, s.ignored)
	if err == nil && result.Server.ID != id && (result.Operation == "" || result.Server.ID != "") {
		err = s.scrubber.ofAnotherID(call, got, "server", id, result.Server.ID)
	}
	if err != nil {
		return cloud.Result{}, err
	}
	return result, nil
}

func encodeUpdate(op string, update cloud.Update) (wire wireUpdate, err *cloud.Error) {
	label := func(key string, value *string) {
		if wire.Labels == nil {
			wire.Labels = map[string]*string{}
		}
		wire.Labels[key] = value
	}
	for _, change := range update {
		switch change := change.(type) {
		case cloud.SetCPU:
			wire.CPU = (*int)(&change)
		case cloud.SetMemory:
			wire.Memory = new(0)
			*wire.Memory, err = gib(op, int(change))
		case cloud.SetDisk:
			var disk wireDisk
			disk, err = encodeDisk(op, cloud.Disk(change))
			wire.addDisk(disk)
		case cloud.SetDiskKeep:
			wire.addDisk(wireDisk{Name: change.Name, Keep: &change.Keep})
		case cloud.SetRootDisk:
			wire.RootDisk, err = encodeRootDisk(op, cloud.RootDisk{SizeMiB: int(change)})
		case cloud.SetSecurityGroups:
			wire.SecurityGroups = cloud.SecurityGroups(change).List()
		case cloud.SetAllowedAddresses:
			wire.AllowedAddresses = append([]string{}, cloud.AllowedAddresses(change).List()...)
		case cloud.SetPublicAddress:
			wire.PublicAddress = encode(wirePublicAddress{Network: string(change)})
		case cloud.RemovePublicAddress:
			wire.PublicAddress = []byte("null")
		case cloud.SetLabel:
			label(change.Key, &change.Value)
		case cloud.RemoveLabel:
			label(string(change), nil)
		case cloud.SetPower:
			wire.PowerState = (*string)(&change.State)
			if change.ShutsDown() {
				wire.PowerOffMode = "Soft"
			}
		default:
			err = refuse(op, cloud.Unsupported, "this client cannot change %s", change)
		}
		if err != nil {
			return wireUpdate{}, err
		}
	}
	return wire, nil
}

// DeleteServer deletes the server of this id. A 202 says that the deletion has begun.
func (s *serverClient) DeleteServer(ctx context.Context, id string) (cloud.Result, error) {
	call, err := serverCall(http.MethodDelete, id, "delete server ")
	if err != nil {
		return cloud.Result{}, err
	}
	call.limit = 0
	got, err := s.calls.do(ctx, call)
	if err != nil {
		return cloud.Result{}, err
	}
	if got.status != http.StatusAccepted {
		return cloud.Result{}, nil
	}
	result := cloud.Result{Server: cloud.Server{ID: id, State: cloud.StateDeleting}}
	if s.capabilities.cached().Has(cloud.Operations) {
		// A reference that cannot be read leaves the state of the server, which shows as much.
		result.Operation, _ = operationOf(got)
	}
	return result, nil
}
