package openstack

import (
	"encoding/base64"

	"github.com/privatecloud/operator/internal/cloud"
)

// maxUserData bounds the user data in base64, as the compute service does.
const maxUserData = 65535

// userData returns the user data of a create as the service takes it, and whether the
// server needs a config drive for it: then it is there also for a server without a
// network, or whose network has no metadata service. It returns nil without user data.
func userData(op string, data cloud.UserData) ([]byte, *bool, *cloud.Error) {
	if len(data) == 0 {
		return nil, nil, nil
	}
	size := base64.StdEncoding.EncodedLen(len(data))
	if size > maxUserData {
		return nil, nil, cloud.UserDataTooLarge(op, size, maxUserData)
	}
	// The SDK sends what is base64 already as it is: it must not guess.
	return base64.StdEncoding.AppendEncode(nil, data), new(true), nil
}
