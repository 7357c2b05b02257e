package vsphere

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/privatecloud/operator/internal/cloud"
)

// The owner's mark: keys of a VM's extraConfig. The clone sets both.
const (
	// labelsKey has the labels as JSON, {} if there are none.
	labelsKey = "privatecloud.labels"
	// originKey has how the VM came to be, as JSON. It never changes.
	originKey = "privatecloud.origin"
)

// Further keys of a VM's extraConfig.
const (
	// disksKey says where the disks with names are attached, as JSON. Disks have no names in a
	// vCenter.
	disksKey = "privatecloud.disks"
	// detachedKey has the files of the disks that were detached from a VM for its deletion, as
	// JSON: a change may take effect after its call, or its answer may be lost.
	detachedKey = "privatecloud.detached"
)

// origin is the create that made a VM.
type origin struct {
	// Key is the idempotency key, and Request a digest of what was asked for.
	Key     string `json:"key,omitempty"`
	Request string `json:"request,omitempty"`
	// Template, Folder and Network, which is that of the first interface, are what was asked for.
	// Folder may be longer than names of folders are.
	Template string `json:"template,omitempty"`
	Folder   string `json:"folder,omitempty"`
	Network  string `json:"network,omitempty"`
	// Default is the name of the template where none was asked for.
	Default string `json:"default,omitempty"`
	// Disks are where the template has its disks, empty if it has none; nil in VMs of older versions.
	Disks []slot `json:"disks,omitzero"`
	// AntiAffinity is the one by which the other VMs of its group find the VM.
	AntiAffinity cloud.AntiAffinity `json:"antiAffinity,omitzero"`
}

func originOf(req cloud.CreateServer) origin {
	return origin{
		Key: req.IdempotencyKey, Request: digest(req), Template: req.Template, Folder: req.Folder, Network: req.FirstNetwork(), AntiAffinity: req.AntiAffinity,
	}
}

// checkLabel refuses texts that JSON changes.
func checkLabel(op, key, value string) error {
	if !utf8.ValidString(key) || !utf8.ValidString(value) {
		return refuse(op, cloud.Rejected, "the label %s is not valid UTF-8", quote(key))
	}
	return nil
}

// encode returns v as JSON. The types of this package always have one.
func encode(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("vsphere: encoding %T: %v", v, err))
	}
	return string(data)
}

// digest identifies what was asked for.
func digest(req cloud.CreateServer) string {
	sum := sha256.Sum256([]byte(encode(req)))
	return hex.EncodeToString(sum[:16])
}

// keySpace is the namespace of the UUIDs of keys that are none themselves.
var keySpace = uuid.MustParse("6f0f2c1e-4f0e-5d0a-9a57-0c6f0a1f7b11")

// idOf returns the instance UUID of the VM that creates with this key make. Without a
// key, each create has its own.
func idOf(key string) string {
	if key == "" {
		return uuid.NewString()
	}
	if id, err := uuid.Parse(key); err == nil {
		return id.String()
	}
	return uuid.NewSHA1(keySpace, []byte(key)).String()
}
