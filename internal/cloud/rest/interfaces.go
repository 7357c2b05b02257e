package rest

import "github.com/privatecloud/operator/internal/cloud"

// wireInterface is a network interface as requests have it.
type wireInterface struct {
	NetworkID string   `json:"networkId"`
	Addresses []string `json:"addresses,omitempty"`
}

func wireInterfaces(interfaces []cloud.Attachment) []wireInterface {
	var wire []wireInterface
	for _, a := range interfaces {
		wire = append(wire, wireInterface(a))
	}
	return wire
}

// interfaces reads the network interfaces of a server.
func (r *reader) interfaces(value []byte) cloud.Interfaces {
	if isNull(value) {
		return ""
	}
	var list []cloud.Interface
	if !values(value, func(value []byte) { list = append(list, networkInterface(value)) }) {
		r.ignored.add("interfaces", "not an array")
	}
	interfaces, valid := cloud.NewInterfaces(list)
	if !valid {
		r.ignored.add("interfaces", "a text that is no address")
	}
	return interfaces
}

func networkInterface(value []byte) (i cloud.Interface) {
	fields(value, func(field, value []byte) {
		switch string(field) {
		case "macAddress":
			i.MAC = addressText(value)
		case "addresses":
			values(value, func(value []byte) { i.Addresses = append(i.Addresses, addressText(value)) })
		}
	})
	return i
}

// addressText returns the text of a value. What is not a string stays as it is: no address.
func addressText(value []byte) string {
	switch {
	case isNull(value):
		return ""
	case isText(value):
		return unquote(value)
	}
	return string(value)
}
