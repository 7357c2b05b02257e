package cloud

import (
	"context"
	"net/netip"
	"slices"
	"strings"
	"unicode/utf8"
)

// The most security groups of a server that are kept, and the longest name of one, in characters.
const (
	MaxSecurityGroups    = 64
	MaxSecurityGroupName = 255
)

// AddressPending is the public address of a server that is being given one, or has one that the cloud does not show yet, and
// the allowed addresses of a server while they are changed.
const AddressPending = "pending"

// SecurityGroups are the names of the security groups of a server, sorted, each once. They are one text, which can be
// compared and takes little memory: the names are separated by line feeds, which no name has.
type SecurityGroups string

// NewSecurityGroups returns the groups of these names, and whether all of them are valid: names that are empty, too
// long or no printable text are left out, and so is what is beyond MaxSecurityGroups.
func NewSecurityGroups(names []string) (groups SecurityGroups, valid bool) {
	kept := slices.Compact(slices.Sorted(slices.Values(names)))
	given := len(kept)
	kept = slices.DeleteFunc(kept, func(name string) bool {
		return name == "" || utf8.RuneCountInString(name) > MaxSecurityGroupName || !utf8.ValidString(name) || strings.ContainsAny(name, "\n\r\x00")
	})
	return SecurityGroups(strings.Join(kept[:min(len(kept), MaxSecurityGroups)], "\n")), len(kept) == given
}

// List returns each name.
func (g SecurityGroups) List() []string {
	if g == "" {
		return nil
	}
	return strings.Split(string(g), "\n")
}

// MaxAllowedAddresses is how many addresses and ranges that a server may use are kept.
const MaxAllowedAddresses = 64

// AllowedAddresses are IP addresses and ranges in their canonical form, sorted, each once. Like SecurityGroups, they are one
// text, whose lines they are.
type AllowedAddresses string

// NewAllowedAddresses returns these addresses and ranges, and whether all of them are valid: those that cannot be read are
// left out, and so are those beyond MaxAllowedAddresses. A range of one address is an address.
func NewAllowedAddresses(texts []string) (addresses AllowedAddresses, valid bool) {
	valid = true
	var kept []string
	for _, text := range texts {
		address, ok := ParseAllowedAddress(text)
		switch {
		case !ok:
			valid = false
		case address.IsSingleIP():
			kept = append(kept, address.Addr().String())
		default:
			kept = append(kept, address.String())
		}
	}
	slices.Sort(kept)
	kept = slices.Compact(kept)
	return AllowedAddresses(strings.Join(kept[:min(len(kept), MaxAllowedAddresses)], "\n")), valid && len(kept) <= MaxAllowedAddresses
}

// ParseAllowedAddress returns the range of an address or range, without address bits behind the prefix, and whether it is one.
func ParseAllowedAddress(text string) (netip.Prefix, bool) {
	prefix, err := netip.ParsePrefix(text)
	if address, failed := netip.ParseAddr(text); failed == nil && address.Zone() == "" {
		prefix, err = netip.PrefixFrom(address, address.BitLen()), nil
	}
	return prefix.Masked(), err == nil && !prefix.Addr().Is4In6()
}

// List returns each address and range; none while they are changed.
func (a AllowedAddresses) List() []string {
	if a == "" || a == AddressPending {
		return nil
	}
	return strings.Split(string(a), "\n")
}

// PublicAddressRemover is an optional interface of a Client with the capability PublicAddresses whose addresses outlive
// their server: what deletes a server deletes them once it is gone.
type PublicAddressRemover interface {
	// DeletePublicAddresses deletes what SetPublicAddress has given a server. The server must be gone, or about to be
	// deleted. It succeeds if there is nothing to delete.
	DeletePublicAddresses(ctx context.Context, serverID string) error
}
