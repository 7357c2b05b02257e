package rest

import (
	"context"
	"crypto/x509"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-resty/resty/v2"

	"github.com/privatecloud/operator/internal/cloud"
)

// Client is one cloud's REST API. It is safe for concurrent use.
type Client struct {
	name        string
	endpoint    string
	host        string
	agent       string
	timeout     time.Duration
	uniqueNames bool
	// credentials is a pointer, which fmt does not follow when it prints a Client:
	// of a field that is not exported it asks no String.
	credentials *Credentials
	log         logr.Logger
	metrics     *Metrics

	http    *http.Client
	resty   *resty.Client
	session *session
	gate    gate
	turns   *turns
	// probed holds what Capabilities returned last; nil before.
	probed atomic.Pointer[cloud.Capabilities]
	// probing is held by the one call that asks for capabilities on behalf of
	// those that need them.
	probing chan struct{}
}

var _ cloud.Client = (*Client)(nil)

// New returns a client of the cloud that cfg describes. It makes no call. Its
// errors say what is wrong with cfg and what to do, and quote no secret.
func New(cfg Config) (*Client, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	endpoint, err := parseEndpoint(cfg.Endpoint)
	if err != nil {
		return nil, err
	}
	var roots *x509.CertPool
	if len(cfg.CA) > 0 {
		if roots, err = parseCA(cfg.CA); err != nil {
			return nil, err
		}
	}
	client := &http.Client{Transport: newTransport(cfg, roots), CheckRedirect: checkRedirect}
	return &Client{
		name:        cfg.Name,
		endpoint:    trimSlash(endpoint),
		host:        endpoint.Hostname(),
		agent:       fmt.Sprintf("private-cloud-operator/%s", cfg.Version),
		timeout:     cfg.Timeout,
		uniqueNames: cfg.UniqueNames,
		credentials: &cfg.Credentials,
		log:         cfg.Log.WithValues("cloud", cfg.Name),
		metrics:     cfg.Metrics,
		http:        client,
		resty:       resty.NewWithClient(client).SetLogger(silent{}).SetRetryCount(0),
		session:     newSession(),
		turns:       newTurns(cfg.Limits),
		probing:     make(chan struct{}, 1),
	}, nil
}

// request prepares one exchange. Resty leaves the body alone, to be read
// within its bound.
func (c *Client) request(ctx context.Context, call *call, token string) *resty.Request {
	r := c.resty.R().SetContext(ctx).SetDoNotParseResponse(true).
		SetHeader("Accept", "application/json").
		SetHeader("User-Agent", c.agent).
		SetHeader("X-Request-Id", call.id)
	if token != "" {
		r.SetHeader("Authorization", "Bearer "+token)
	}
	if call.key != "" {
		r.SetHeader("Idempotency-Key", call.key)
	}
	if call.body != nil {
		r.SetHeader("Content-Type", "application/json").SetBody(call.body)
	}
	if len(call.query) > 0 {
		r.SetQueryParamsFromValues(call.query)
	}
	return r
}

// silent keeps resty from logging: its lines may hold addresses and headers.
type silent struct{}

func (silent) Errorf(string, ...any) {}
func (silent) Warnf(string, ...any)  {}
func (silent) Debugf(string, ...any) {}

// asError keeps a nil *cloud.Error from becoming an error that is not nil.
func asError(err *cloud.Error) error {
	if err == nil {
		return nil
	}
	return err
}
