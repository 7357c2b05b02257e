package openstack

import (
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/privatecloud/operator/internal/cloud"
)

const (
	// maxBody and maxList bound the body of an answer about one object and of a listing
	// that is read as a whole, in bytes.
	maxBody = 1 << 20
	maxList = 8 << 20
)

// service is a kind of service of OpenStack.
type service string

const (
	identity service = "identity"
	compute  service = "compute"
	network  service = "network"
	image    service = "image"
	// volume is the block storage service, which not every cloud has.
	volume service = "block-storage"
)

// subject is what a call is about. It decides what a status means.
type subject int

const (
	aboutCloud subject = iota
	aboutSession
	aboutCreate
	aboutServer
	aboutNetwork
	aboutImage
	// aboutReach is about a port or a floating address of a server.
	aboutReach
	// aboutVolume is about a volume, and aboutNewVolume about one that is to be made.
	aboutVolume
	aboutNewVolume
	// aboutRouters is a listing of routers, which not every network service has.
	aboutRouters
	// aboutConsole is a read of the console of a server, which is a POST.
	aboutConsole
)

// call is a request to a service, without the token.
type call struct {
	about   subject
	service service
	method  string
	// route is the path as a template, for metrics and logs; never an id.
	route string
	// path is escaped and follows the base URL of the service.
	path   string
	query  url.Values
	header map[string]string
	body   any
	// op says what is being done, for people.
	op string
	// out takes the JSON of a successful answer; nil if only the status counts.
	out any
	// stream reads the body of a successful answer in place of out, once for each try.
	stream func(io.Reader) *cloud.Error
	// microversion of the compute service, if it is not that of the session, or of another service; empty for its least one.
	microversion string
	// limit bounds the body of a successful answer in bytes; maxBody if zero.
	limit int64
}

// reads reports whether the call changes nothing in the cloud.
func (c *call) reads() bool { return c.method == http.MethodGet || c.about == aboutConsole }

// changes reports whether the call changes something in the cloud. Sessions do not
// count: one too many does no harm.
func (c *call) changes() bool { return !c.reads() && c.about != aboutSession }

// cloudWide reports whether the call is about the cloud as a whole.
func (c *call) cloudWide() bool { return c.about == aboutCloud || c.about == aboutSession }

// repeatable reports whether sending the call twice has the same effect as once. A deletion
// is not: something else may have its id by then.
func (c *call) repeatable() bool { return c.reads() }

// answer is what a service sent to a call that it accepted.
type answer struct {
	status int
	header http.Header
}

// grant is what a login yields.
type grant struct {
	token string
	// project is the id of the project that the token is for.
	project string
	// services are the services of the region by kind, with their base URLs.
	services map[service]string
	// microversion of the compute service.
	microversion string
	// renewAt is zero where the cloud gave no expiry.
	renewAt time.Time
}

// isID reports whether text may be an id of the cloud, and is safe in a path.
func isID(text string) bool {
	if text == "" || len(text) > 64 {
		return false
	}
	for _, r := range text {
		if (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && r != '-' && r != '_' {
			return false
		}
	}
	return true
}
