package cloudinit

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"unicode/utf8"
)

// isMessage matches user data that is a MIME message: it begins with one of the headers
// by which cloud-init recognizes one.
var isMessage = regexp.MustCompile(`(?i)^\s*(mime-version|content-type):`)

// unprintable matches characters that JSON has as they are and YAML does not.
var unprintable = regexp.MustCompile(`[\x{7f}-\x{9f}\x{feff}\x{fffe}\x{ffff}]`)

// lineLength is the length of the lines of base64 in a part.
const lineLength = 76

// Compose returns the user data of a server: data as it is if there are no keys, a
// cloud-config of the keys if there is no data, and otherwise a MIME multi-part message
// of both, in which the keys are added to those of the data. Equal arguments yield equal
// bytes. Keys are lines of an authorized_keys file.
func Compose[K ~string](data []byte, keys []K) []byte {
	switch {
	case len(keys) == 0:
		return data
	case len(data) == 0:
		return cloudConfig("", keys)
	}
	// By default cloud-init keeps of two lists the first: this part is merged in another way.
	own := cloudConfig("merge_how: list(append)+dict(no_replace,recurse_list)+str()\n", keys)
	sum := sha256.Sum256(append(bytes.Clone(data), own...))
	boundary := hex.EncodeToString(sum[:])
	var out bytes.Buffer
	fmt.Fprintf(&out, "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"%s\"\n\n--%s\n", boundary, boundary)
	writePart(&out, data)
	fmt.Fprintf(&out, "\n--%s\nContent-Type: text/cloud-config; charset=\"utf-8\"\n", boundary)
	writeEncoded(&out, own)
	fmt.Fprintf(&out, "\n--%s--\n", boundary)
	return out.Bytes()
}

// cloudConfig returns a cloud-config with the keys. A JSON list is a YAML list if what YAML
// does not allow as it is, such as a control character in the comment of a key, is escaped:
// else cloud-init reads nothing of the document.
func cloudConfig[K ~string](settings string, keys []K) []byte {
	list, err := json.Marshal(keys)
	if err != nil {
		panic(fmt.Sprintf("cloudinit: encoding strings: %v", err))
	}
	list = unprintable.ReplaceAllFunc(list, func(char []byte) []byte {
		r, _ := utf8.DecodeRune(char)
		return fmt.Appendf(nil, `\u%04x`, r)
	})
	return fmt.Appendf(nil, "#cloud-config\n%sssh_authorized_keys: %s\n", settings, list)
}

// writePart writes the headers and the body of the part with the user data. A message
// is a part with its own headers. Of other data, cloud-init finds the format out by how
// it begins, after it was unpacked if it is compressed.
func writePart(out *bytes.Buffer, data []byte) {
	switch {
	case isMessage.Match(data):
		out.Write(bytes.TrimLeft(data, " \t\r\n"))
		return
	case bytes.HasPrefix(data, []byte{0x1f, 0x8b}):
		out.WriteString("Content-Type: application/gzip\n")
	default:
		out.WriteString("Content-Type: text/plain; charset=\"utf-8\"\n")
	}
	writeEncoded(out, data)
}

// writeEncoded writes a body in base64, which keeps every byte, and the header that says so.
func writeEncoded(out *bytes.Buffer, body []byte) {
	out.WriteString("Content-Transfer-Encoding: base64\n\n")
	text := base64.StdEncoding.EncodeToString(body)
	for len(text) > lineLength {
		out.WriteString(text[:lineLength] + "\n")
		text = text[lineLength:]
	}
	out.WriteString(text + "\n")
}
