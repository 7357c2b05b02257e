package rest

import (
	"context"
	"net/http"
	"net/url"
	"unicode/utf8"

	"github.com/privatecloud/operator/internal/cloud"
)

// maxUserData bounds the user data of a server, in bytes before its base64.
const maxUserData = 64 << 10

// serverClient reads and changes servers.
type serverClient struct {
	calls        *calls
	capabilities *capabilityClient
	pages        *pageReader
	ignored      *ignored
	scrubber     *scrubber
}

// CheckName asks the cloud whether a name may be used. The folder is sent only to a
// cloud whose names are unique per folder.
func (s *serverClient) CheckName(ctx context.Context, name cloud.Name) error {
	op := "check name " + quote(name.Name)
	if err := checkName(op, name.Name); err != nil {
		return err
	}
	call := &call{
		about: aboutName, method: http.MethodGet, route: "/check/{name}", path: join("check", name.Name), op: op,
	}
	if name.Folder != "" {
		has, err := s.capabilities.neededBy(ctx, op)
		if err != nil {
			return err
		}
		if has.Has(cloud.FolderNames) {
			call.query = url.Values{"folder": {name.Folder}}
		}
	}
	_, err := s.calls.do(ctx, call)
	return asError(err)
}

// GetServer returns the server of this id.
func (s *serverClient) GetServer(ctx context.Context, id string) (cloud.Server, error) {
	call, err := serverCall(http.MethodGet, id, "get server ")
	if err != nil {
		return cloud.Server{}, err
	}
	return s.doServer(ctx, call, id)
}

// ServerStatus returns the status of the server of this id.
func (s *serverClient) ServerStatus(ctx context.Context, id string) (cloud.Status, error) {
	call, err := serverCall(http.MethodGet, id, "get status of server ")
	if err != nil {
		return cloud.Status{}, err
	}
	call.route += "/status"
	call.path += "/status"
	got, err := s.calls.do(ctx, call)
	if err != nil {
		return cloud.Status{}, cloud.ConfirmNotFound(ctx, s, id, err)
	}
	status, err := decodeStatus(call, got, s.ignored)
	return status, asError(err)
}

// ListServers returns a page. A core cloud has one page, and no filters.
func (s *serverClient) ListServers(ctx context.Context, opts cloud.ListServers) (cloud.ServerPage, error) {
	to := &collector{}
	next, err := s.StreamServers(ctx, opts, to)
	if err != nil {
		return cloud.ServerPage{}, err
	}
	return cloud.ServerPage{Servers: to.servers, Next: next}, nil
}

// StreamServers is ListServers that passes the servers on while they arrive.
func (s *serverClient) StreamServers(ctx context.Context, opts cloud.ListServers, to cloud.ServerSink) (next string, err error) {
	call := listing()
	has, failed := s.capabilities.neededBy(ctx, call.op)
	if failed != nil {
		return "", failed
	}
	if call.query, failed = listQuery(call.op, has, opts); failed != nil {
		return "", failed
	}
	page, failed := s.pages.read(ctx, call, to, has)
	if failed != nil {
		return "", failed
	}
	switch {
	case page.Next == "" || has.Has(cloud.Sizing):
		return page.Next, nil
	case s.capabilities.stated.declared:
		return "", unreadable(call, declaredCorePages)
	default:
		// The cloud has become an extended one: ask for its capabilities again.
		s.capabilities.forget()
		return "", unreadable(call, "the listing has further pages, though the cloud reported no capabilities")
	}
}

// CreateServer creates a server.
func (s *serverClient) CreateServer(ctx context.Context, req cloud.CreateServer) (cloud.Result, error) {
	op := "create server " + quote(req.Name)
	if err := checkName(op, req.Name); err != nil {
		return cloud.Result{}, err
	}
	has, err := s.capabilities.neededBy(ctx, op)
	if err != nil {
		return cloud.Result{}, err
	}
	if err := require(op, has, createNeeds(req)...); err != nil {
		return cloud.Result{}, err
	}
	memory, err := gib(op, req.MemoryMiB)
	if err != nil {
		return cloud.Result{}, err
	}
	disks, err := wireDisks(op, req.Disks)
	if err != nil {
		return cloud.Result{}, err
	}
	root, err := encodeRootDisk(op, req.RootDisk)
	if err != nil {
		return cloud.Result{}, err
	}
	if size := len(req.UserData); size > maxUserData {
		return cloud.Result{}, cloud.UserDataTooLarge(op, size, maxUserData)
	}
	call := &call{
		about: aboutCreate, method: http.MethodPost, route: "/servers", path: "/servers", op: op, limit: maxBody,
		body: encode(wireCreate{
			Name: req.Name, CPU: req.CPU, Memory: memory, Template: req.Template, Folder: req.Folder,
			NetworkID: req.NetworkID, PowerState: string(req.PowerState), Labels: req.Labels, UserData: req.UserData, Disks: disks, RootDisk: root,
			Zone: req.Zone, AntiAffinity: wireAntiAffinityOf(req.AntiAffinity), Interfaces: wireInterfaces(req.Interfaces),
			SecurityGroups: req.SecurityGroups.List(),
		}),
	}
	if has.Has(cloud.Idempotency) {
		call.key, call.sharedNames = req.IdempotencyKey, !has.Has(cloud.UniqueNames)
	}
	if !sendable(call.key) {
		return cloud.Result{}, refuse(op, cloud.Rejected, "the idempotency key holds characters that cannot be sent")
	}
	got, err := s.calls.do(ctx, call)
	if err != nil {
		return cloud.Result{}, err
	}
	// The answer to a create is about what it created, also if the cloud normalizes names.
	result, err := resultOf(call, got, has, s.ignored)
	return result, asError(err)
}

// gib returns memory in GiB, of which the API has whole ones.
func gib(op string, mib int) (int, *cloud.Error) {
	if mib%mibPerGiB != 0 {
		return 0, refuse(op, cloud.Rejected, "this cloud has sizes in whole GiB, not %d MiB", mib)
	}
	return mib / mibPerGiB, nil
}

func createNeeds(req cloud.CreateServer) []cloud.Capability {
	var needs []cloud.Capability
	if req.CPU != 0 || req.MemoryMiB != 0 || req.Template != "" {
		needs = append(needs, cloud.Sizing)
	}
	if req.Flavor != "" {
		needs = append(needs, cloud.Flavors)
	}
	if req.Folder != "" {
		needs = append(needs, cloud.Folders)
	}
	if len(req.Attachments()) > 0 {
		needs = append(needs, cloud.Networks)
	}
	if req.Interfaced() {
		needs = append(needs, cloud.WithInterfaces)
	}
	if req.Addressed() {
		needs = append(needs, cloud.StaticAddresses)
	}
	if req.PowerState != "" {
		needs = append(needs, cloud.Power)
	}
	if req.PowerState == cloud.PowerOff {
		needs = append(needs, cloud.PowerAtCreate)
	}
	if len(req.Labels) > 0 {
		needs = append(needs, cloud.Labels)
	}
	if len(req.UserData) > 0 {
		needs = append(needs, cloud.WithUserData)
	}
	needs = append(append(needs, req.Disks.Needs()...), req.RootDisk.Needs()...)
	if req.Zone != "" {
		needs = append(needs, cloud.Zones)
	}
	if req.AntiAffinity != (cloud.AntiAffinity{}) {
		needs = append(needs, cloud.WithAntiAffinity)
	}
	if req.SecurityGroups != "" {
		needs = append(needs, cloud.WithSecurityGroups)
	}
	return needs
}

// serverCall is a call about one server. With an empty id it would be about all
// of them.
func serverCall(method, id, op string) (*call, *cloud.Error) {
	op += quote(id)
	if id == "" {
		return nil, refuse(op, cloud.Rejected, "no id was given")
	}
	return &call{
		about: aboutServer, method: method, route: "/servers/{id}", path: join("servers", id),
		limit: maxBody, op: op,
	}, nil
}

// doServer makes a call whose answer is the server of this id.
func (s *serverClient) doServer(ctx context.Context, call *call, id string) (cloud.Server, error) {
	got, err := s.calls.do(ctx, call)
	if err != nil {
		return cloud.Server{}, err
	}
	server, err := decodeServer(call, got, s.ignored)
	if err != nil {
		return cloud.Server{}, err
	}
	if server.ID != id {
		return cloud.Server{}, s.scrubber.ofAnotherID(call, got, "server", id, server.ID)
	}
	return server, nil
}

// checkName refuses names that cannot be sent as they are.
func checkName(op, name string) *cloud.Error {
	switch {
	case name == "":
		return refuse(op, cloud.Rejected, "the name is empty")
	case !utf8.ValidString(name):
		return refuse(op, cloud.Rejected, "the name is not valid UTF-8")
	}
	return nil
}
