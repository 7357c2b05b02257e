package openstack_test

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const (
	// otherType is a volume type beside the default one.
	otherType = "t-other"
	// withTags is a microversion that shows the tags of volumes, withExtend one that extends those in use.
	withTags, withExtend = "compute 2.89", "volume 3.42"
)

// volume is a volume as cinder shows it.
type volume struct {
	ID, Name, Status string
	Size             int
	Type             string `json:"volume_type"`
	Bootable         string
	Attachments      []struct {
		Server string `json:"server_id"`
	}
}

// volumesOf returns the URL of the volumes of a project.
func volumesOf(p project) string {
	target := admin().services["block-storage"] // with the project of the administrator
	return target[:strings.LastIndex(target, "/")+1] + p.id + "/volumes"
}

// ensureVolumeType makes a volume type, if there is none of this name.
func (a *administrator) ensureVolumeType(name string) {
	var got struct {
		Types []struct{ Name string } `json:"volume_types"`
	}
	a.must(http.MethodGet, a.services["block-storage"]+"/types", nil, &got)
	if !slices.Contains(got.Types, struct{ Name string }{name}) {
		a.create("block-storage", "types", "volume_type", map[string]any{"name": name})
	}
}

// cleanVolumes deletes the volumes of a project that are not in use.
func cleanVolumes(a *administrator, p project) {
	if guests { // no cinder
		return
	}
	for _, v := range a.list("block-storage", "volumes", url.Values{"all_tenants": {"1"}, "project_id": {p.id}}.Encode()) {
		a.remove("block-storage", "volumes", v)
	}
}

// volumeTest is a member of a project who uses volumes.
type volumeTest struct {
	*testing.T
	p      project
	member *administrator
}

// volumes returns the volumes of the project by their size.
func (v volumeTest) volumes() map[int]volume {
	v.Helper()
	var got struct{ Volumes []volume }
	v.member.must(http.MethodGet, volumesOf(v.p)+"/detail", nil, &got)
	all := map[int]volume{}
	for _, each := range got.Volumes {
		all[each.Size] = each
	}
	return all
}

// until waits until the volume of a size has a status.
func (v volumeTest) until(size int, status string) volume {
	v.Helper()
	return awaited(v.T, func() (volume, bool) {
		found := v.volumes()[size]
		return found, found.Status == status
	})
}

// awaited returns the result of a function once it reports that the result is the one that a test waits for.
func awaited[T any](t *testing.T, get func() (T, bool)) T {
	t.Helper()
	for deadline := time.Now().Add(callTime); ; <-time.After(pollTime) {
		got, done := get()
		if done {
			return got
		}
		if time.Now().After(deadline) {
			t.Fatalf("still %+v", got)
		}
	}
}

// The OpenStack of these tests has cinder: servers get volumes with their creation and later, volumes grow while they are in use, and go with
// their server.
func TestVolumesOfTheTestCloud(t *testing.T) {
	t.Parallel()
	a := admin()
	p := newProject(t)
	v := volumeTest{t, p, a.as(tokenOf(t, p, person))}
	server := v.createServer()
	at := a.services["compute"] + "/servers/" + server
	awaited(t, func() (map[string]any, bool) {
		var got struct{ Server map[string]any }
		v.member.must(http.MethodGet, at, nil, &got)
		if got.Server["status"] == "ERROR" {
			t.Fatalf("the server: %v", got.Server["fault"])
		}
		return got.Server, got.Server["status"] == "ACTIVE"
	})
	if root, data := v.until(2, "in-use"), v.until(3, "in-use"); root.Bootable != "true" || data.Bootable != "false" || data.Type != otherType || data.Attachments[0].Server != server {
		t.Errorf("got the volumes %+v and %+v", root, data)
	}

	made := v.createVolume(http.StatusAccepted)
	v.until(1, "available")
	v.member.must(http.MethodPost, at+"/os-volume_attachments", map[string]any{"volumeAttachment": map[string]any{"volumeId": made, "tag": "later"}}, nil)
	v.until(1, "in-use")
	if diff := cmp.Diff([]string{"data", "later", "root"}, v.tags(at)); diff != "" {
		t.Errorf("tags (-want +got):\n%s", diff)
	}

	extend := map[string]any{"os-extend": map[string]any{"new_size": 4}}
	v.member.at(withExtend).must(http.MethodPost, volumesOf(p)+"/"+made+"/action", extend, nil)
	v.until(4, "in-use")
	awaited(t, func() ([]string, bool) { // nova got the event
		var got struct {
			Actions []struct{ Action string } `json:"instanceActions"`
		}
		v.member.must(http.MethodGet, at+"/os-instance-actions", nil, &got)
		var all []string
		for _, each := range got.Actions {
			all = append(all, each.Action)
		}
		return all, slices.Contains(all, "extend_volume")
	})

	a.must(http.MethodPut, a.services["block-storage"]+"/os-quota-sets/"+p.id, map[string]any{"quota_set": map[string]any{"volumes": 3}}, nil)
	v.createVolume(http.StatusRequestEntityTooLarge)

	v.member.must(http.MethodDelete, at, nil, nil)
	awaited(t, func() (map[int]volume, bool) {
		left := v.volumes()
		return left, len(left) == 1 && left[4].Status == "available"
	})
}

// createServer creates a server whose disk is a volume, with another volume, and returns its id. Both go with the server.
func (v volumeTest) createServer() string {
	v.Helper()
	var got struct{ Server struct{ ID string } }
	disk := func(size, order int, tag, source string, more map[string]any) map[string]any {
		d := map[string]any{
			"boot_index": order, "source_type": source, "destination_type": "volume", "volume_size": size, "delete_on_termination": true, "tag": tag,
		}
		maps.Copy(d, more)
		return d
	}
	image := admin().list("image", "images", "name=small")[0]["id"]
	flavor := admin().ensure("compute", "flavors", "flavor", map[string]any{"name": diskless})
	v.member.must(http.MethodPost, admin().services["compute"]+"/servers", map[string]any{"server": map[string]any{
		"name": "with-volumes", "flavorRef": flavor, "networks": "none", "block_device_mapping_v2": []any{
			disk(2, 0, "root", "image", map[string]any{"uuid": image}),
			disk(3, -1, "data", "blank", map[string]any{"volume_type": otherType}),
		},
	}}, &got)
	return got.Server.ID
}

// createVolume sends the create of a volume of 1 GiB, which is to be answered with a status, and returns its id.
func (v volumeTest) createVolume(want int) string {
	v.Helper()
	status, _, text, err := v.member.request(http.MethodPost, volumesOf(v.p), strings.NewReader(`{"volume": {"size": 1, "name": "made"}}`), "application/json")
	if err != nil || status != want {
		v.Fatalf("POST volumes: %d, %v: %s, want %d", status, err, text, want)
	}
	return v.volumes()[1].ID
}

// tags returns the tags of the volumes of a server, sorted.
func (v volumeTest) tags(server string) (tags []string) {
	v.Helper()
	var got struct {
		Attachments []struct{ Tag string } `json:"volumeAttachments"`
	}
	v.member.at(withTags).must(http.MethodGet, server+"/os-volume_attachments", nil, &got)
	for _, each := range got.Attachments {
		tags = append(tags, each.Tag)
	}
	slices.Sort(tags)
	return tags
}
