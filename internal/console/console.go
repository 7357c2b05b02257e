// Package console encrypts what the console of a VM printed for the one who asked for it: the text may hold secrets, and
// the object with the answer is stored in etcd, backups and audit logs. The operator seals with the public key of the
// request, and the kubectl plugin opens with the private key, which it keeps in memory.
package console

import (
	"crypto/ecdh"
	"crypto/hpke"
	"encoding/base64"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
)

// Key is the private key of one request.
type Key struct{ private hpke.PrivateKey }

// encoding is that of keys and texts in the API.
var encoding = base64.StdEncoding.Strict()

// kem is the mechanism by which the key of the text is encapsulated. The curve is one that FIPS 140 allows.
func kem() hpke.KEM { return hpke.DHKEM(ecdh.P256()) }

// NewKey returns a new key.
func NewKey() (Key, error) {
	private, err := kem().GenerateKey()
	if err != nil {
		return Key{}, fmt.Errorf("generate a key for the console: %w", err)
	}
	return Key{private}, nil
}

// Public returns the public key, for spec.publicKey of a VMConsoleRequest.
func (k Key) Public() string { return encoding.EncodeToString(k.private.PublicKey().Bytes()) }

// Open returns the text that was sealed for the request with this UID.
func (k Key) Open(request types.UID, sealed string) (string, error) {
	data, err := encoding.DecodeString(sealed)
	if err != nil {
		return "", fmt.Errorf("decode the console: %w", err)
	}
	text, err := hpke.Open(k.private, hpke.HKDFSHA256(), hpke.AES256GCM(), []byte(request), data)
	if err != nil {
		return "", fmt.Errorf("decrypt the console: %w", err)
	}
	return string(text), nil
}

// Check returns an error, with what to do, if a text cannot be sealed with the public key.
func Check(public string) error {
	if _, err := publicKey(public); err != nil {
		return errors.New("spec.publicKey is not a point of the curve P-256: create another request with the 65 bytes of an uncompressed public key, in base64")
	}
	return nil
}

// Seal encrypts a text for the request with this UID, with its public key, in base64. It fails if Check does.
func Seal(public string, request types.UID, text string) (string, error) {
	key, err := publicKey(public)
	if err != nil {
		return "", err
	}
	sealed, err := hpke.Seal(key, hpke.HKDFSHA256(), hpke.AES256GCM(), []byte(request), []byte(text))
	if err != nil {
		return "", fmt.Errorf("encrypt the console: %w", err)
	}
	return encoding.EncodeToString(sealed), nil
}

func publicKey(public string) (hpke.PublicKey, error) {
	data, err := encoding.DecodeString(public)
	if err != nil {
		return nil, fmt.Errorf("decode the public key: %w", err)
	}
	key, err := kem().NewPublicKey(data)
	if err != nil {
		return nil, fmt.Errorf("read the public key: %w", err)
	}
	return key, nil
}
