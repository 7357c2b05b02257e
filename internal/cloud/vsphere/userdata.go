package vsphere

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"regexp"

	"github.com/vmware/govmomi/vim25/types"

	"github.com/privatecloud/operator/internal/cloud"
)

// maxUserData bounds the user data as the extraConfig holds it, packed and in base64.
const maxUserData = 64 << 10

// maxHostname bounds a host name, as Linux does.
const maxHostname = 64

var (
	// hostname matches host names, also with their domains.
	hostname = regexp.MustCompile(`^[A-Za-z0-9]([-A-Za-z0-9]{0,61}[A-Za-z0-9])?(\.[A-Za-z0-9]([-A-Za-z0-9]{0,61}[A-Za-z0-9])?)*$`)
	// numbered matches names that end with a number after a dot, as a version or an address
	// does. No domain does.
	numbered = regexp.MustCompile(`\.\d+$`)
)

// isHostname reports whether the name of a VM is one for its guest: cloud-init takes what is
// before the first dot as the host name, and all of it as the fully qualified one.
func isHostname(name string) bool {
	return len(name) <= maxHostname && hostname.MatchString(name) && !numbered.MatchString(name)
}

// checkUserData refuses user data that the extraConfig cannot hold.
func checkUserData(op string, data cloud.UserData) error {
	if size := len(packed(data)); len(data) > 0 && size > maxUserData {
		return cloud.UserDataTooLarge(op, size, maxUserData)
	}
	return nil
}

// packed returns data compressed and in base64.
func packed(data []byte) string {
	var out bytes.Buffer
	pack := gzip.NewWriter(&out)
	_, err := pack.Write(data)
	if failed := pack.Close(); err != nil || failed != nil {
		panic(fmt.Sprintf("vsphere: packing into memory: %v, %v", err, failed))
	}
	return base64.StdEncoding.EncodeToString(out.Bytes())
}

// otherGuestKeys are the other keys by which a guest is configured: vendor data of the data source VMware of cloud-init, and
// Ignition.
var otherGuestKeys = []string{
	"guestinfo.vendordata", "guestinfo.vendordata.encoding",
	"guestinfo.ignition.config.data", "guestinfo.ignition.config.data.encoding", "guestinfo.ignition.config.url",
	"guestinfo.coreos.config.data", "guestinfo.coreos.config.data.encoding", "guestinfo.coreos.config.url",
}

// guestInfo returns the extraConfig that the data source VMware of cloud-init reads in
// the guest. A clone inherits the extraConfig of its template, which may have been made from
// another VM: an empty value removes a key.
func guestInfo(id string, req cloud.CreateServer) []types.BaseOptionValue {
	metadata, metadataEncoding, userData, userDataEncoding := "", "", "", ""
	if len(req.UserData) > 0 {
		values := map[string]string{"instance-id": id}
		if isHostname(req.Name) {
			values["local-hostname"] = req.Name
		}
		metadata, metadataEncoding = base64.StdEncoding.EncodeToString([]byte(encode(values))), "base64"
		userData, userDataEncoding = packed(req.UserData), "gzip+base64"
	}
	options := []types.BaseOptionValue{
		&types.OptionValue{Key: "guestinfo.metadata", Value: metadata},
		&types.OptionValue{Key: "guestinfo.metadata.encoding", Value: metadataEncoding},
		&types.OptionValue{Key: "guestinfo.userdata", Value: userData},
		&types.OptionValue{Key: "guestinfo.userdata.encoding", Value: userDataEncoding},
	}
	for _, key := range otherGuestKeys {
		options = append(options, &types.OptionValue{Key: key, Value: ""})
	}
	return options
}
