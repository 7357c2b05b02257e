package transport

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/privatecloud/operator/internal/cloud"
)

func TestHoldsAreBounded(t *testing.T) {
	t.Parallel()
	holds := NewHolds()
	of := func(n int) *Held { return holds.Of("test", "http://cloud.test", fmt.Sprint(n)) }
	used := of(0)
	for n := range 100 {
		of(n + 1)
		if of(0) != used {
			t.Fatalf("credentials that are in use were forgotten after %d others", n+1)
		}
	}
	if got := len(holds.clouds["test"]); got != maxHolds {
		t.Errorf("%d holds of one Cloud are kept, want %d", got, maxHolds)
	}
	holds.Forget("test")
	if len(holds.clouds) != 0 {
		t.Errorf("%d Clouds are remembered, want none", len(holds.clouds))
	}
}

func TestHoldsShowNoSecret(t *testing.T) {
	t.Parallel()
	holds := NewHolds()
	credentials := []string{"u", "hunter2"}
	if holds.fingerprint("http://cloud.test", credentials) == NewHolds().fingerprint("http://cloud.test", credentials) {
		t.Error("the fingerprint of a password is the same in each process: it can be looked up")
	}
	holds.Of("test", "http://cloud.test", credentials...).Login.Refuse(&cloud.Error{Detail: "hunter2"})
	if text := fmt.Sprintf("%v %+v %#v %s", holds, holds, holds, holds); strings.Contains(text, "hunter2") {
		t.Errorf("a secret shows in %q", text)
	}
}

func TestHoldsKeepCredentialsApart(t *testing.T) {
	t.Parallel()
	holds := NewHolds()
	if holds.Of("test", "http://cloud.test", "a", "bc") == holds.Of("test", "http://cloud.test", "ab", "c") {
		t.Error("other credentials share what is held")
	}
	var none *Holds
	none.Forget("test")
	if first, second := none.Of("test", "http://cloud.test"), none.Of("test", "http://cloud.test"); first == second {
		t.Error("nil Holds keep something")
	}
}

func TestHoldOfRefusedCredentialsDoubles(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		holds := NewHolds()
		login := &holds.Of("test", "http://cloud.test", "old").Login
		for range 2 {
			for _, want := range []time.Duration{30 * time.Second, time.Minute, 2 * time.Minute, 4 * time.Minute, 8 * time.Minute, 15 * time.Minute, 15 * time.Minute} {
				login.Refuse(&cloud.Error{Kind: cloud.Unauthorized})
				time.Sleep(want - time.Second)
				if login.Refused() == nil {
					t.Errorf("the credentials are tried again before %s", want)
				}
				time.Sleep(time.Second)
				if login.Refused() != nil {
					t.Errorf("the credentials are not tried again after %s", want)
				}
			}
			login.Accept()
		}
		login.Refuse(&cloud.Error{Kind: cloud.Unauthorized})
		if holds.Of("test", "http://cloud.test", "new").Login.Refused() != nil {
			t.Error("other credentials are not tried")
		}
	})
}
