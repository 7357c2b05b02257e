package cloud

import (
	"context"
	"slices"
	"strings"
	"unicode/utf8"
)

// The most security groups of a server that are kept, and the longest name of one, in characters.
const (
	MaxSecurityGroups    = 64
	MaxSecurityGroupName = 255
)

// AddressPending is the public address of a server that is being given one, or has one that the cloud does not show yet.
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

// PublicAddressRemover is an optional interface of a Client with the capability PublicAddresses whose addresses outlive
// their server: what deletes a server deletes them once it is gone.
type PublicAddressRemover interface {
	// DeletePublicAddresses deletes what SetPublicAddress has given a server. The server must be gone, or about to be
	// deleted. It succeeds if there is nothing to delete.
	DeletePublicAddresses(ctx context.Context, serverID string) error
}
