package openstack

import (
	"context"

	"github.com/privatecloud/operator/internal/cloud"
)

// reach is what an update changes of who reaches a server.
type reach struct {
	// groups are those that the server is to have; empty keeps those that it has.
	groups cloud.SecurityGroups
	// allowed are the addresses that it is to be allowed to use; nil keeps those that it has.
	allowed *cloud.AllowedAddresses
	// external is the external network of which it is to have an address; empty for none.
	external string
	// withoutAddress: its floating address is to be deleted.
	withoutAddress bool
}

// changeReach changes the security groups, the allowed addresses and the floating address of a server. It returns the address that the server has
// been given, which compute may not show for a while.
func (c *Client) changeReach(ctx context.Context, op string, current *server, w reach) (address string, err *cloud.Error) {
	annotate := func(metadata map[string]string) *cloud.Error {
		return c.session.do(ctx, addMetadata(op, current.ID, metadata))
	}
	if w.groups != "" {
		if err := c.security.set(ctx, op, current, w.groups, annotate); err != nil {
			return "", err
		}
	}
	if w.allowed != nil {
		if err := c.allowed.set(ctx, op, current, *w.allowed, annotate); err != nil {
			return "", err
		}
	}
	switch {
	case w.external != "":
		address, err = c.floating.assign(ctx, op, current, w.external, func() *cloud.Error {
			if current.Metadata[publicKey] != "" {
				return nil
			}
			return annotate(map[string]string{publicKey: cloud.AddressPending})
		})
	case w.withoutAddress:
		err = c.floating.removeAll(ctx, op, current.ID)
	default:
		return "", nil
	}
	if err == nil && address != current.Metadata[publicKey] {
		err = annotate(map[string]string{publicKey: address})
	}
	return address, err
}
