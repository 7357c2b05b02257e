package vsphere

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"unicode/utf8"

	"github.com/privatecloud/operator/internal/cloud"
)

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
