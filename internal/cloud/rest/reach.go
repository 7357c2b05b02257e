package rest

import (
	"net/netip"

	"github.com/privatecloud/operator/internal/cloud"
)

// securityGroups reads the security groups of a server.
func (r *reader) securityGroups(value []byte) cloud.SecurityGroups {
	if isNull(value) {
		return ""
	}
	var names []string
	if !values(value, func(value []byte) { names = append(names, addressText(value)) }) {
		r.ignored.add("securityGroups", "not an array")
	}
	groups, valid := cloud.NewSecurityGroups(names)
	if !valid {
		r.ignored.add("securityGroups", "a text that is no name")
	}
	return groups
}

// allowedAddresses reads what a server may use beside its own addresses.
func (r *reader) allowedAddresses(value []byte) cloud.AllowedAddresses {
	if isNull(value) {
		return ""
	}
	var texts []string
	if !values(value, func(value []byte) { texts = append(texts, addressText(value)) }) {
		r.ignored.add("allowedAddresses", "not an array")
	}
	addresses, valid := cloud.NewAllowedAddresses(texts)
	if !valid {
		r.ignored.add("allowedAddresses", "a text that is no address or range, or too many of them")
	}
	return addresses
}

// publicAddress reads the public address of a server.
func (r *reader) publicAddress(value []byte) string {
	if isNull(value) {
		return ""
	}
	var text string
	if !fields(value, func(field, value []byte) {
		if string(field) == "address" {
			text = addressText(value)
		}
	}) {
		r.ignored.add("publicAddress", "not an object")
		return ""
	}
	address, err := netip.ParseAddr(text)
	if err != nil || address.Zone() != "" {
		r.ignored.add("publicAddress", "a text that is no address")
		return ""
	}
	return address.Unmap().String()
}
