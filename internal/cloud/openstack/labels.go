package openstack

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/privatecloud/operator/internal/cloud"
)

// The compute service keeps labels as metadata. Its keys consist of letters, digits and
// - _ : . and space, so other bytes of a label's key are escaped as : and two hex
// digits, and so is the : itself.
const (
	maxMetadata = 255
	maxTag      = 60
	keyLetters  = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_."
)

// The keys of metadata that are no labels. No escaped key of a label looks like these,
// because what follows the : is no hex digit.
const (
	// templateKey is on servers of earlier versions: the template that was asked for. Nova
	// shows the image that a server was made from, so it is neither read nor written.
	templateKey = "privatecloud:template"
	// networkKey has the id of the network of the first interface that a server was created with.
	networkKey = "privatecloud:network"
	// sizeKey has the size that was asked for, and the flavor that was chosen for it.
	sizeKey = "privatecloud:size"
	// imageKey has the id of the image that the volume was made from which a server boots from.
	imageKey = "privatecloud:image"
	// storedKey is on a server that compute was asked to make volumes for.
	storedKey = "privatecloud:disks"
	// keptKey has the names of the disks of a create that are kept when the server is deleted, separated by commas.
	keptKey = "privatecloud:kept-disks"
	// guardedKey is set while the security groups of several ports are changed one after the other.
	guardedKey = "privatecloud:security-groups"
	// groupKey has the name of the server group that a server was created in.
	groupKey = "privatecloud:server-group"
	// publicKey has the floating address that an update has given the server, cloud.AddressPending before that, and an empty text
	// after its removal.
	publicKey = "privatecloud:public-address"
	// allowedKey has what an update has allowed a server to use beside its own addresses, separated by commas,
	// cloud.AddressPending while that changes, and an empty text after its removal.
	allowedKey = "privatecloud:allowed-addresses"
	// resizeKey has the size before a resize, and the flavor of the resize.
	resizeKey = "privatecloud:resize"
)

// encodeKey returns the key of metadata for the key of a label.
func encodeKey(key string) string {
	var out strings.Builder
	for i := range len(key) {
		if b := key[i]; strings.IndexByte(keyLetters, b) >= 0 {
			out.WriteByte(b)
		} else {
			const digits = "0123456789abcdef"
			out.Write([]byte{':', digits[b>>4], digits[b&15]})
		}
	}
	return out.String()
}

// decodeKey returns the key of the label that a key of metadata stands for. A key that
// encodeKey does not return, which somebody else chose, stays as it is.
func decodeKey(key string) string {
	if !strings.Contains(key, ":") {
		return key
	}
	var out strings.Builder
	for i := 0; i < len(key); i++ {
		if key[i] == ':' && i+2 < len(key) {
			if b, err := strconv.ParseUint(key[i+1:i+3], 16, 8); err == nil {
				out.WriteByte(byte(b))
				i += 2
				continue
			}
		}
		out.WriteByte(key[i])
	}
	if decoded := out.String(); encodeKey(decoded) == key {
		return decoded
	}
	return key
}

// metadata returns labels as metadata, and refuses those that the service cannot keep.
func metadata(op string, labels map[string]string) (map[string]string, *cloud.Error) {
	encoded := make(map[string]string, len(labels))
	for key, value := range labels {
		if err := checkLabel(op, key, value); err != nil {
			return nil, err
		}
		encoded[encodeKey(key)] = value
	}
	return encoded, nil
}

// checkLabel refuses a label that the service cannot keep as it is.
func checkLabel(op, key, value string) *cloud.Error {
	switch {
	case key == "" || len(encodeKey(key)) > maxMetadata:
		return refuse(op, cloud.Rejected, "the key of label %s is empty or too long for this cloud", quote(key))
	case !utf8.ValidString(value) || utf8.RuneCountInString(value) > maxMetadata:
		return refuse(op, cloud.Rejected, "the value of label %s is not UTF-8, or has more than %d characters", quote(key), maxMetadata)
	}
	return nil
}

// tag returns the tag for the value of a label; empty if the value fits into none.
func tag(value string) string {
	const prefix = "uid-"
	if value == "" || strings.ContainsAny(value, "/,") || utf8.RuneCountInString(prefix+value) > maxTag {
		return ""
	}
	return prefix + value
}

// labelsOf returns the labels among the metadata of a server; nil if there are none. Of two keys
// that stand for one label, that of encodeKey counts: it is the one that is set and removed.
func labelsOf(metadata map[string]string) map[string]string {
	var labels map[string]string
	for key, value := range metadata {
		switch key {
		case templateKey, networkKey, sizeKey, resizeKey, groupKey, publicKey, allowedKey, guardedKey, imageKey, storedKey, keptKey:
			continue
		}
		label := decodeKey(key)
		if own := encodeKey(label); own != key {
			if _, there := metadata[own]; there {
				continue
			}
		}
		if labels == nil {
			labels = make(map[string]string, len(metadata))
		}
		labels[label] = value
	}
	return labels
}

// carries reports whether a server has all of these labels.
func carries(server cloud.Server, labels map[string]string) bool {
	for key, value := range labels {
		if has, ok := server.Labels[key]; !ok || has != value {
			return false
		}
	}
	return true
}
