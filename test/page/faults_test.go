package page_test

import (
	"strings"
	"testing"
)

const outage = `input[role=switch][value=outage]`

func TestSwitchTurnsAFaultOnAndOffWithTheKeyboard(t *testing.T) {
	f := open(t)
	f.tabTo(outage)
	f.press(" ")
	f.until(shows("announcement", "The fault Outage is on"))
	f.call(503, "GET", f.mock.API+"/servers", "")
	f.until(shows("faults", "/**"))
	f.until(`document.querySelector("#faults td:nth-child(3)").textContent === "1"`)
	f.press(" ")
	f.until(shows("announcement", "The fault Outage is off"))
	f.call(200, "GET", f.mock.API+"/servers", "")
	f.until(`document.getElementById("faults").rows.length === 0`)
}

func TestSwitchShowsAFaultOfTheAdminAPI(t *testing.T) {
	f := open(t)
	f.call(201, "POST", f.mock.Admin+"/faults", `{"id":"outage","match":{"path":"/**"},"status":503}`)
	f.until(`document.querySelector("` + outage + `").checked`)
	f.call(204, "DELETE", f.mock.Admin+"/faults", "")
	f.until(`!document.querySelector("` + outage + `").checked`)
}

func TestHeldCallsAreReleasedAndFaultsRemovedWithTheKeyboard(t *testing.T) {
	f := open(t)
	f.call(201, "POST", f.mock.Admin+"/faults", `{"id":"mine","match":{"method":"POST"},"hold":true}`)
	f.until(shows("faults", "mine"))
	created := make(chan string, 1)
	go func() { created <- f.create("web") }()
	f.until(`document.querySelector("#faults td:nth-child(4)").textContent === "1"`)
	f.tabTo(`button[aria-label="Release mine"]`)
	f.press("\r")
	if id := <-created; id == "" {
		t.Error("the held call has no answer")
	}
	f.until(shows("announcement", "mine held are released"))

	f.tabTo(`button[aria-label="Remove mine"]`)
	f.press("\r")
	f.until(`document.getElementById("faults").rows.length === 0`)
	if focused := evaluate[string](f, "document.activeElement.id"); focused != "faults-title" {
		t.Errorf("the focus is at %q, want it at the heading of the faults", focused)
	}
}

func TestChangeThatIsRefusedIsAnnounced(t *testing.T) {
	f := open(t)
	f.call(201, "POST", f.mock.Admin+"/faults", `{"id":"mine","match":{"path":"/none"},"status":503}`)
	f.until(shows("faults", "mine"))
	f.tabTo("#pause")
	f.press(" ")
	f.until(shows("connection", "Paused"))
	f.call(204, "DELETE", f.mock.Admin+"/faults", "")
	f.tabTo(`button[aria-label="Remove mine"]`)
	f.press("\r")
	f.until(shows("announcement", `no such fault: "mine"`))
	f.tab.Forget(func(problem string) bool { return strings.Contains(problem, "404") })
}
