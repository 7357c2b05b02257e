package fake

import (
	"fmt"
	"slices"

	"github.com/privatecloud/operator/internal/cloud"
)

const (
	// NoGroup is the security group that no cloud has. Every other one exists.
	NoGroup = "nowhere"
	// NotAllowed is the address that no server may use beside its own. It may use every other one.
	NotAllowed = "127.0.0.1"
	// publicAddresses is how many addresses ExternalNetwork has.
	publicAddresses = 64
)

func checkGroups(op string, groups cloud.SecurityGroups) error {
	if slices.Contains(groups.List(), NoGroup) {
		return failure(op, cloud.Rejected, "there is no security group %s", quote(NoGroup))
	}
	return nil
}

func checkAllowed(op string, addresses cloud.AllowedAddresses) error {
	if slices.Contains(addresses.List(), NotAllowed) {
		return failure(op, cloud.Rejected, "no server may use %s", NotAllowed)
	}
	return nil
}

// checkPublicAddress refuses a public address of another network than the external one, and one that
// is not free. The caller holds mu.
func (c *serverClient) checkPublicAddress(op string, s cloud.Server, network string) error {
	if err := checkExternal(op, network); err != nil {
		return err
	}
	if c.publicAddress(s.ID, s.PublicAddress) == "" {
		return failure(op, cloud.Quota, "no address of %s is free", network)
	}
	return nil
}

// publicAddress returns the address of a server, the first free one if it has none, and an
// empty text if none is free. The caller holds mu.
func (c *serverClient) publicAddress(id, has string) string {
	if has != "" && has != cloud.AddressPending {
		return has
	}
	for n := range publicAddresses {
		address := fmt.Sprintf("203.0.113.%d", n+1)
		if !slices.ContainsFunc(c.store.all(), func(s cloud.Server) bool { return s.ID != id && s.PublicAddress == address }) {
			return address
		}
	}
	return ""
}
