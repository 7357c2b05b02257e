package field

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/approval"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloudinit"
)

var bootstrap = Field{
	Lacking: func(vm *pcapi.VM, caps cloud.Capabilities) []string {
		return when(vm.Spec.Bootstrap != nil && !caps.Has(cloud.WithUserData), "bootstrap")
	},
	Create: func(vm *pcapi.VM, in Context, req *cloud.CreateServer) {
		if vm.Spec.Bootstrap != nil {
			req.UserData = cloudinit.Compose(in.UserData, vm.Spec.Bootstrap.CloudInit.SSHAuthorizedKeys)
		}
	},
	DescribeCreate: func(vm *pcapi.VM, _ cloud.CreateServer) []string {
		if vm.Spec.Bootstrap == nil {
			return nil
		}
		return describeBootstrap(vm.Spec.Bootstrap.CloudInit)
	},
}

// describeBootstrap says who may log in to a server, and which Secret has its user data. What that holds is not
// part of a plan.
func describeBootstrap(c pcapi.VMCloudInit) (parts []string) {
	if ref := c.UserDataSecretRef; ref != nil {
		parts = append(parts, fmt.Sprintf("user data of Secret %s key %s", approval.Quoted(ref.Name), approval.Quoted(ref.Key)))
	}
	for _, key := range c.SSHAuthorizedKeys {
		parts = append(parts, "SSH key "+fingerprint(string(key)))
	}
	return parts
}

// fingerprint returns the fingerprint of a line of an authorized_keys file as ssh-keygen -l prints it, and its comment.
func fingerprint(line string) string {
	fields := append(strings.SplitN(line, " ", 3), "", "")
	key, err := base64.StdEncoding.DecodeString(fields[1])
	if err != nil {
		key = []byte(fields[1]) // as it is: the cloud may take it all the same
	}
	sum := sha256.Sum256(key)
	text := "SHA256:" + base64.RawStdEncoding.EncodeToString(sum[:])
	if fields[2] != "" {
		text += " " + approval.Quoted(fields[2])
	}
	return text
}
