package rest

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"time"
)

// The cloud's JSON. A field of the wrong type makes the whole answer
// unreadable; a value of the right type that makes no sense counts as absent.

type wireServer struct {
	ID             string             `json:"id"`
	Name           string             `json:"name"`
	Labels         map[string]*string `json:"labels"`
	State          *string            `json:"state"`
	CPU            wireCount          `json:"cpu"`
	Memory         wireCount          `json:"memory"`
	Template       string             `json:"template"`
	Folder         string             `json:"folder"`
	NetworkID      string             `json:"networkId"`
	Host           string             `json:"host"`
	CPUUtilization wirePercent        `json:"cpuUtilization"`
	CPUUsageMHz    wireCount          `json:"cpuUsageMHz"`
	MemoryUsageMB  wireCount          `json:"memoryUsageMB"`
	CreatedAt      wireTime           `json:"createdAt"`
	UpdatedAt      wireTime           `json:"updatedAt"`
}

// wireListing is the extended profile's page; a core cloud sends a bare array.
type wireListing struct {
	// Servers is nil where the field is missing or null.
	Servers []wireServer `json:"servers"`
	Next    *string      `json:"next"`
}

type wireStatus struct {
	CPUUtilization wirePercent `json:"cpuUtilization"`
}

type wireCapabilities struct {
	// Capabilities is nil where the field is missing or null.
	Capabilities []string `json:"capabilities"`
}

type wireCreate struct {
	Name       string            `json:"name"`
	CPU        int               `json:"cpu,omitempty"`
	Memory     int               `json:"memory,omitempty"`
	Template   string            `json:"template,omitempty"`
	Folder     string            `json:"folder,omitempty"`
	NetworkID  string            `json:"networkId,omitempty"`
	PowerState string            `json:"powerState,omitempty"`
	Labels     map[string]string `json:"labels,omitempty"`
}

type wireUpdate struct {
	CPU        *int               `json:"cpu,omitempty"`
	Memory     *int               `json:"memory,omitempty"`
	PowerState *string            `json:"powerState,omitempty"`
	Labels     map[string]*string `json:"labels,omitempty"`
}

type wireLogin struct {
	Username string `json:"username"`
	Password string `json:"password"`
}

type wireSession struct {
	Token     string   `json:"token"`
	ExpiresAt wireTime `json:"expiresAt"`
}

// wireNumber reads a JSON number into n and reports whether there was one; null
// is none.
func wireNumber(data []byte, n *float64) (bool, error) {
	if bytes.Equal(data, []byte("null")) {
		return false, nil
	}
	if data[0] != '-' && (data[0] < '0' || data[0] > '9') {
		return false, &json.UnmarshalTypeError{Value: "something else"}
	}
	// What is too large for a float comes back as infinite, and so out of range.
	value, err := strconv.ParseFloat(string(data), 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return false, err
	}
	*n = value
	return true, nil
}

// wireCount is a whole number, 0 where absent or outside 0 to 2^31-1.
type wireCount int

func (c *wireCount) UnmarshalJSON(data []byte) error {
	var n float64
	if _, err := wireNumber(data, &n); err != nil {
		return err
	}
	*c = 0
	if n == math.Trunc(n) && n >= 0 && n <= math.MaxInt32 {
		*c = wireCount(n)
	}
	return nil
}

// wirePercent is a number within 0 to 100, rounded; nil where absent or outside.
type wirePercent struct{ value *int }

func (p *wirePercent) UnmarshalJSON(data []byte) error {
	var n float64
	given, err := wireNumber(data, &n)
	if err != nil {
		return err
	}
	p.value = nil
	if given && n >= 0 && n <= 100 {
		rounded := int(math.Round(n))
		p.value = &rounded
	}
	return nil
}

// wireTime is RFC 3339, zero where absent or something else.
type wireTime struct{ time.Time }

func (t *wireTime) UnmarshalJSON(data []byte) error {
	var text *string
	if err := json.Unmarshal(data, &text); err != nil {
		return err
	}
	t.Time = time.Time{}
	if text == nil {
		return nil
	}
	if parsed, err := time.Parse(time.RFC3339, *text); err == nil {
		t.Time = parsed.UTC()
	}
	return nil
}
