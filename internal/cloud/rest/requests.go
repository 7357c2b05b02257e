package rest

import (
	"encoding/json"

	"github.com/privatecloud/operator/internal/cloud"
)

type wireCreate struct {
	Name       string            `json:"name"`
	CPU        int               `json:"cpu,omitempty"`
	Memory     int               `json:"memory,omitempty"`
	Template   string            `json:"template,omitempty"`
	Folder     string            `json:"folder,omitempty"`
	NetworkID  string            `json:"networkId,omitempty"`
	PowerState string            `json:"powerState,omitempty"`
	Labels     map[string]string `json:"labels,omitempty"`
	UserData   []byte            `json:"userData,omitempty"`
	Disks      []wireDisk        `json:"disks,omitempty"`
	RootDisk   *wireRootDisk     `json:"rootDisk,omitempty"`
	Zone       string            `json:"zone,omitempty"`

	AntiAffinity *wireAntiAffinity `json:"antiAffinity,omitempty"`

	Interfaces []wireInterface `json:"interfaces,omitempty"`

	SecurityGroups []string `json:"securityGroups,omitempty"`
}

// wireAntiAffinity is an anti-affinity as requests have it.
type wireAntiAffinity struct {
	Group string `json:"group"`
	// Policy is Required or Preferred.
	Policy string `json:"policy"`
}

func wireAntiAffinityOf(a cloud.AntiAffinity) *wireAntiAffinity {
	switch {
	case a == cloud.AntiAffinity{}:
		return nil
	case a.Required:
		return &wireAntiAffinity{Group: a.Group, Policy: "Required"}
	}
	return &wireAntiAffinity{Group: a.Group, Policy: "Preferred"}
}

type wireUpdate struct {
	CPU        *int    `json:"cpu,omitempty"`
	Memory     *int    `json:"memory,omitempty"`
	PowerState *string `json:"powerState,omitempty"`
	// PowerOffMode is empty for that of the cloud.
	PowerOffMode string             `json:"powerOffMode,omitempty"`
	Labels       map[string]*string `json:"labels,omitempty"`
	Disks        []wireDisk         `json:"disks,omitempty"`
	RootDisk     *wireRootDisk      `json:"rootDisk,omitempty"`

	SecurityGroups []string `json:"securityGroups,omitempty"`
	// AllowedAddresses is nil for no change, and empty to remove them.
	AllowedAddresses []string `json:"allowedAddresses,omitzero"`
	// PublicAddress is a wirePublicAddress, or null to remove the address.
	PublicAddress json.RawMessage `json:"publicAddress,omitempty"`
}

// wirePublicAddress asks for an address of an external network.
type wirePublicAddress struct {
	Network string `json:"network"`
}

type wireLogin struct {
	Username string `json:"username"`
	Password string `json:"password"`
}
