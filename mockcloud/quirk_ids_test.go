package mockcloud

import "testing"

func TestReusedIDsAreTheLowestFreeNumbers(t *testing.T) {
	h := start(t, Options{Profile: Extended, Quirks: Quirks{ReusesIDs: true}})
	create := func(path, body string, headers ...string) string {
		t.Helper()
		return decodeInto[struct {
			ID string `json:"id"`
		}](t, h.call(201, "POST", path, body, headers...).body).ID
	}
	network := func(name string) string {
		return create("/networks", `{"name":"`+name+`","cidr":"10.0.0.0/24","gateway":"10.0.0.1"}`)
	}
	for _, test := range []struct {
		name, path     string
		first, another func() string
	}{
		{"servers", "/servers/", func() string { return create("/servers", `{"name":"a"}`) }, func() string { return create("/servers", `{"name":"b"}`) }},
		{"networks", "/networks/", func() string { return network("a") }, func() string { return network("b") }},
		{"snapshots", "/servers/1/snapshots/",
			func() string { return create("/servers/1/snapshots", `{"name":"a"}`) },
			func() string { return create("/servers/1/snapshots", `{"name":"b"}`) }},
	} {
		if id := test.first(); id != "1" {
			t.Errorf("%s: the first has the id %s, want 1", test.name, id)
		}
		h.call(204, "DELETE", test.path+"1", "")
		if id := test.another(); id != "1" {
			t.Errorf("%s: the one after the first was deleted has the id %s, want 1", test.name, id)
		}
	}
}

func TestAKeyDoesNotLeadToWhatGotTheIDSince(t *testing.T) {
	h := start(t, Options{Profile: Extended, Quirks: Quirks{ReusesIDs: true}})
	h.call(201, "POST", "/servers", `{"name":"a"}`, "Idempotency-Key", "key-a")
	h.call(204, "DELETE", "/servers/1", "")
	h.call(201, "POST", "/servers", `{"name":"b"}`)
	got := decodeInto[Server](t, h.call(201, "POST", "/servers", `{"name":"a"}`, "Idempotency-Key", "key-a").body)
	if got.Name != "a" {
		t.Errorf("the repeated create is answered with server %q, want a", got.Name)
	}
}
