package vsphere

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/privatecloud/operator/internal/cloud"
)

// The owner's mark: keys of a VM's extraConfig. The clone sets both.
const (
	// labelsKey has the labels as JSON, {} if there are none.
	labelsKey = "privatecloud.labels"
	// originKey has how the VM came to be, as JSON. It never changes.
	originKey = "privatecloud.origin"
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

// mark returns the extraConfig of a new VM that is cloned from a template: an empty value removes a key.
func mark(req cloud.CreateServer, of template) []types.BaseOptionValue {
	labels := req.Labels
	if labels == nil {
		labels = map[string]string{}
	}
	from := originOf(req)
	if from.Template == "" {
		from.Default = of.name
	}
	from.Disks = []slot{}
	for _, device := range of.devices.SelectByType((*types.VirtualDisk)(nil)) {
		from.Disks = append(from.Disks, slotOf(device))
	}
	return []types.BaseOptionValue{
		&types.OptionValue{Key: labelsKey, Value: encode(labels)},
		&types.OptionValue{Key: originKey, Value: encode(from)},
		&types.OptionValue{Key: detachedKey, Value: ""}, // that of the template
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

const (
	// maxName bounds names of VMs and folders, in characters.
	maxName = 80
	// digestLength is the length of the digest in the name of a folder that is cut off.
	digestLength = 10
	// escaped are the characters that a vCenter stores in another form.
	escaped = `/\%`
)

// checkName refuses names that a vCenter refuses or changes.
func checkName(op, name string) error {
	switch {
	case name == "":
		return refuse(op, cloud.Rejected, "the name is empty")
	case !utf8.ValidString(name):
		return refuse(op, cloud.Rejected, "the name is not valid UTF-8")
	case strings.ContainsAny(name, escaped):
		return refuse(op, cloud.Prohibited, `the name has one of the characters / \ %%, which names in a vCenter do not have`)
	case utf8.RuneCountInString(name) > maxName:
		return refuse(op, cloud.Prohibited, "the name has more than %d characters", maxName)
	}
	return nil
}

// folderName returns the name in the vCenter of the folder that is called name. One
// that is too long is cut off, and has a digest to stay apart from others.
func folderName(op, name string) (string, error) {
	switch {
	case !utf8.ValidString(name):
		return "", refuse(op, cloud.Rejected, "the folder is not valid UTF-8")
	case strings.ContainsAny(name, escaped):
		return "", refuse(op, cloud.Rejected, `the folder has one of the characters / \ %%, which names in a vCenter do not have`)
	}
	return shortened(name), nil
}

func shortened(name string) string {
	if utf8.RuneCountInString(name) <= maxName {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return string([]rune(name)[:maxName-digestLength-1]) + "-" + hex.EncodeToString(sum[:])[:digestLength]
}
