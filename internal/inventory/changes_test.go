package inventory

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloud/fake"
)

// serverFields returns the fields of cloud.Server.
func serverFields() []reflect.StructField {
	return reflect.VisibleFields(reflect.TypeFor[cloud.Server]())
}

func comparesField(name string) bool {
	for _, field := range comparedFields {
		if field.name == name {
			return true
		}
	}
	return false
}

func TestEachServerFieldIsEitherComparedOrIgnored(t *testing.T) {
	listed := map[string]int{}
	for _, field := range comparedFields {
		listed[field.name]++
	}
	for name, reason := range ignoredFields {
		listed[name]++
		if reason == "" {
			t.Errorf("ignored field %s has no reason", name)
		}
	}
	want := map[string]int{}
	for _, field := range serverFields() {
		want[field.Name] = 1
	}
	if diff := cmp.Diff(want, listed); diff != "" {
		t.Errorf("add each field of cloud.Server to comparedFields or to ignoredFields; times listed (-want +got):\n%s", diff)
	}
}

// fullServer returns a server without a zero field.
func fullServer(t *testing.T) cloud.Server {
	t.Helper()
	var server cloud.Server
	for _, field := range serverFields() {
		changeField(t, &server, field)
	}
	return server
}

// changeField gives a field of server another value. It does not change what
// the field points to.
func changeField(t *testing.T, server *cloud.Server, field reflect.StructField) {
	t.Helper()
	switch value := reflect.ValueOf(server).Elem().FieldByIndex(field.Index); was := value.Interface().(type) {
	case string:
		value.SetString(was + "x")
	case cloud.Interfaces:
		value.SetString(string(was) + ",10.0.0.1")
	case cloud.Disks:
		value.SetString(string(was.With(cloud.Disks(fmt.Sprintf("d%d=1", len(was))))))
	case cloud.SecurityGroups:
		value.SetString(string(was) + "x")
	case cloud.AllowedAddresses:
		value.SetString(string(was) + "x")
	case cloud.RootDisk:
		value.Set(reflect.ValueOf(cloud.RootDisk{SizeMiB: was.SizeMiB + 1, Type: was.Type + "x"}))
	case cloud.Image:
		value.Set(reflect.ValueOf(cloud.Image{Name: was.Name + "x", ID: was.ID}))
	case cloud.Heartbeat:
		value.SetUint(uint64(was + 1))
	case cloud.State:
		value.SetString(string(was) + "x")
	case int:
		value.SetInt(int64(was + 1))
	case *int:
		next := 1
		if was != nil {
			next = *was + 1
		}
		value.Set(reflect.ValueOf(&next))
	case map[string]string:
		value.Set(reflect.ValueOf(map[string]string{UIDLabel: was[UIDLabel] + "x"}))
	case time.Time:
		value.Set(reflect.ValueOf(was.Add(time.Hour)))
	default:
		t.Fatalf("field %s has type %s: add a case for it", field.Name, field.Type)
	}
}

func TestPublishReportsChangesOfComparedFieldsOnly(t *testing.T) {
	for _, field := range serverFields() {
		t.Run(field.Name, func(t *testing.T) {
			directory := New(time.Now, "c")
			var events []Event
			directory.Subscribe(func(e Event) { events = append(events, e) })
			inv := directory.Cloud("home")
			publish := func(server cloud.Server) {
				c := fake.New(fake.Options{})
				c.AddServers(server)
				snap, err := List(t.Context(), c, time.Now)
				if err != nil {
					t.Fatalf("List: %v", err)
				}
				inv.Publish(snap)
			}
			server := fullServer(t)
			publish(server)
			publish(server.Clone())
			if got := events[1].Servers; len(got) > 0 {
				t.Fatalf("an equal listing reported %v as changed", got)
			}

			changed := server.Clone()
			changeField(t, &changed, field)
			publish(changed)

			if got, want := len(events[2].Servers) > 0, comparesField(field.Name); got != want {
				t.Errorf("after a change of %s: reported %v as changed, want a report: %t", field.Name, events[2].Servers, want)
			}
		})
	}
}

func TestListingKeepsWhatReconcilersRead(t *testing.T) {
	want := fullServer(t)
	c := fake.New(fake.Options{})
	c.AddServers(want)
	snap, err := List(t.Context(), c, time.Now)
	if err != nil {
		t.Fatalf("List: %v", err)
	}
	got, _ := snap.Server(want.ID)
	want.NetworkID, want.UpdatedAt = "", time.Time{}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the server of the listing (-want +got):\n%s", diff)
	}
}

func TestEachTextOfAServerIsCounted(t *testing.T) {
	for _, field := range serverFields() {
		var server cloud.Server
		if field.Name == "NetworkID" || field.Name == "State" || field.Type.Kind() != reflect.String && field.Name != "Image" {
			continue // It is not kept, is one of a few words, or is not a text.
		}
		before := costOf(newListed(&server))
		changeField(t, &server, field)
		if costOf(newListed(&server)) <= before {
			t.Errorf("costOf does not count %s", field.Name)
		}
	}
}
