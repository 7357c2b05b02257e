package mockcloud

import (
	"fmt"
	"net/http"
	"net/netip"
	"slices"
)

const (
	// DefaultSecurityGroup is the group of servers that are created without groups.
	DefaultSecurityGroup = "default"

	maxSecurityGroups   = 64
	maxAllowedAddresses = 10
	// publicAddresses is how many public addresses there are: those of 203.0.113.0/24.
	publicAddresses = 254
)

// PublicAddress is an address of one of Options.ExternalNetworks that leads to a server.
type PublicAddress struct {
	Network string `json:"network"`
	Address string `json:"address"`
}

// askedAddress is a public address as PATCH /servers/{id} asks for it.
type askedAddress struct {
	Network string `json:"network"`
}

func groupsOrDefault(groups []string) []string {
	if len(groups) == 0 {
		return []string{DefaultSecurityGroup}
	}
	return slices.Compact(slices.Sorted(slices.Values(groups)))
}

func checkGroups(groups []string) error {
	if groups == nil {
		return nil
	}
	if len(groups) == 0 || len(groups) > maxSecurityGroups {
		return invalid("securityGroups: 1-%d are allowed", maxSecurityGroups)
	}
	for _, name := range groups {
		if name == "" || len(name) > maxText {
			return invalid("securityGroups: a name has 1-%d bytes", maxText)
		}
	}
	return nil
}

// admitGroups returns an error for a group that does not exist. The caller holds mu.
func (c *core) admitGroups(groups []string) error {
	for _, name := range groups {
		if name != DefaultSecurityGroup && !slices.Contains(c.behave.SecurityGroups, name) {
			return problem(http.StatusUnprocessableEntity, CodeSecurityGroupUnknown, "there is no security group %q", name)
		}
	}
	return nil
}

// checkAllowed returns an error for texts that are no addresses or ranges, and for those of loopback interfaces.
func checkAllowed(addresses []string) error {
	if len(addresses) > maxAllowedAddresses {
		return invalid("allowedAddresses: at most %d are allowed", maxAllowedAddresses)
	}
	for _, text := range addresses {
		address, noAddress := netip.ParseAddr(text)
		r, noRange := netip.ParsePrefix(text)
		switch {
		case noAddress != nil && (noRange != nil || r != r.Masked()), address.Zone() != "", address.Is4In6(), r.Addr().Is4In6():
			return invalid("allowedAddresses: %q is no address and no range", text)
		case address.IsLoopback() || r.Addr().IsLoopback():
			return problem(http.StatusUnprocessableEntity, CodeAddressInvalid, "no server can use %s", text)
		}
	}
	return nil
}

// checkReach returns an error for groups and addresses that no cloud could have.
func (p patchServer) checkReach() error {
	if err := checkGroups(p.SecurityGroups); err != nil {
		return err
	}
	if err := checkAllowed(p.AllowedAddresses); err != nil {
		return err
	}
	_, _, err := p.publicAddress()
	return err
}

// publicAddress returns the network that is asked for, empty to remove the address, and whether the body has
// the field.
func (p patchServer) publicAddress() (network string, changes bool, err error) {
	switch {
	case p.PublicAddress == nil:
		return "", false, nil
	case string(p.PublicAddress) == "null":
		return "", true, nil
	}
	var asked askedAddress
	if err := decodeStrict(p.PublicAddress, &asked); err != nil {
		return "", true, err
	}
	if asked.Network == "" || len(asked.Network) > maxText {
		return "", true, invalid("publicAddress: network has 1-%d bytes", maxText)
	}
	return asked.Network, true, nil
}

// admitReach returns an error for groups and an external network that do not exist, and if no public address is
// free. The caller holds mu.
func (c *core) admitReach(r *record, p patchServer) error {
	if err := c.admitGroups(p.SecurityGroups); err != nil {
		return err
	}
	network, _, err := p.publicAddress()
	if err != nil || network == "" {
		return err
	}
	if err := c.checkExternal(network); err != nil {
		return err
	}
	if r.PublicAddress == nil && c.st.freePublicAddress() == "" {
		return problem(http.StatusForbidden, CodeQuotaExceeded, "no address of %s is free", network)
	}
	return nil
}

// applyReach changes the groups, the allowed addresses and the public address of a server, and returns the names of the changed fields.
// The caller holds core.mu.
func (s *state) applyReach(r *record, p patchServer) []string {
	var fields []string
	if groups := groupsOrDefault(p.SecurityGroups); p.SecurityGroups != nil && !slices.Equal(groups, r.SecurityGroups) {
		r.SecurityGroups = groups
		fields = append(fields, "securityGroups")
	}
	if addresses := slices.Compact(slices.Sorted(slices.Values(p.AllowedAddresses))); p.AllowedAddresses != nil && !slices.Equal(addresses, r.AllowedAddresses) {
		r.AllowedAddresses = addresses
		fields = append(fields, "allowedAddresses")
	}
	network, changes, _ := p.publicAddress()
	switch {
	case changes && network == "" && r.PublicAddress != nil:
		r.PublicAddress = nil
		fields = append(fields, "publicAddress")
	case changes && network != "" && r.PublicAddress == nil:
		r.PublicAddress = &PublicAddress{Network: network, Address: s.freePublicAddress()}
		fields = append(fields, "publicAddress")
	}
	return fields
}

// freePublicAddress returns the first address that no server has; empty if there is none. The caller holds core.mu.
func (s *state) freePublicAddress() string {
	used := map[string]bool{}
	for _, r := range s.servers {
		if r.PublicAddress != nil {
			used[r.PublicAddress.Address] = true
		}
	}
	for n := range publicAddresses {
		if address := fmt.Sprintf("203.0.113.%d", n+1); !used[address] {
			return address
		}
	}
	return ""
}
