package cloud_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/privatecloud/operator/internal/cloud"
)

func TestNewAllowedAddresses(t *testing.T) {
	for text, want := range map[string]struct {
		addresses cloud.AllowedAddresses
		invalid   bool
	}{
		"":                                {},
		"10.0.0.9 10.0.0.0/28 10.0.0.9":   {addresses: "10.0.0.0/28\n10.0.0.9"},
		"10.0.0.9/32 fd00::9/128":         {addresses: "10.0.0.9\nfd00::9"},
		"10.0.0.9/28 FD00:0::/64":         {addresses: "10.0.0.0/28\nfd00::/64"},
		"0.0.0.0/0 ::/0":                  {addresses: "0.0.0.0/0\n::/0"},
		"10.0.0.9 vip":                    {addresses: "10.0.0.9", invalid: true},
		"::ffff:10.0.0.9":                 {invalid: true},
		"::ffff:10.0.0.0/120":             {invalid: true},
		"fe80::1%eth0 fe80::%1/64":        {invalid: true},
		"10.0.0.0/33 10.0.0 /8 10.0.0.9/": {invalid: true},
	} {
		got, valid := cloud.NewAllowedAddresses(strings.Fields(text))
		if got != want.addresses || valid == want.invalid {
			t.Errorf("%s: got %q, valid %t", text, got, valid)
		}
	}
	many := make([]string, 0, 256)
	for i := range 256 {
		many = append(many, fmt.Sprint("10.0.0.", i))
	}
	if got, valid := cloud.NewAllowedAddresses(many); len(got.List()) != cloud.MaxAllowedAddresses || valid {
		t.Errorf("256 addresses: %d are kept, valid %t", len(got.List()), valid)
	}
}

// What is read is read again as the same.
func FuzzNewAllowedAddresses(f *testing.F) {
	f.Add("10.0.0.9,10.0.0.0/28")
	f.Add("fd00::9,::ffff:10.0.0.9/96,x")
	f.Fuzz(func(t *testing.T, text string) {
		got, _ := cloud.NewAllowedAddresses(strings.Split(text, ","))
		again, valid := cloud.NewAllowedAddresses(got.List())
		if again != got || !valid {
			t.Errorf("%q is %q, and again %q, %t", text, got, again, valid)
		}
	})
}
