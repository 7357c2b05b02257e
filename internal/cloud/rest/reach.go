package rest

import (
	"net/netip"

	"github.com/privatecloud/operator/internal/cloud"
)

// securityGroups reads the security groups of a server.
func (r *reader) securityGroups(value []byte) cloud.SecurityGroups {
	groups, valid := cloud.NewSecurityGroups(r.texts("securityGroups", value))
	if !valid {
		r.ignored.add("securityGroups", "a text that is no name")
	}
	return groups
}

// allowedAddresses reads what a server may use beside its own addresses.
func (r *reader) allowedAddresses(value []byte) cloud.AllowedAddresses {
	addresses, valid := cloud.NewAllowedAddresses(r.texts("allowedAddresses", value))
	if !valid {
		r.ignored.add("allowedAddresses", "a text that is no address or range, or too many of them")
	}
	return addresses
}

// texts reads an array of texts; none if it is null.
func (r *reader) texts(field string, value []byte) (texts []string) {
	if !isNull(value) && !values(value, func(value []byte) { texts = append(texts, addressText(value)) }) {
		r.ignored.add(field, "not an array")
	}
	return texts
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
