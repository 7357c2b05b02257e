package vsphere

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"sync"

	"github.com/vmware/govmomi/sts"
	"github.com/vmware/govmomi/vim25"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloud/transport"
)

// defaultDomain is the domain of the single sign-on that each vCenter has. Some vCenters
// serve the single sign-on below its name only.
const defaultDomain = "vsphere.local"

// account logs in to the vCenter with the credentials.
type account struct {
	sender      *sender
	credentials *Credentials
	login       *transport.Login
	faults      *faults
	// session sends the requests of the managed objects.
	session soap.RoundTripper

	mu sync.Mutex
	// vim is nil until the vCenter has been asked for its managed objects.
	vim *vim25.Client
}

// known returns a client with the managed objects of the vCenter, nil before the first login.
func (a *account) known() *vim25.Client {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.vim
}

// logIn opens a session. The caller holds the turn.
func (a *account) logIn(ctx context.Context) error {
	a.sender.jar.clear()
	vim, err := a.contact(ctx)
	if err != nil {
		return err
	}
	if err := a.present(ctx, vim); err != nil {
		e := a.faults.fail(ctx, "open session", err)
		switch fault := faultOf(err).(type) {
		case *types.InvalidLogin, *types.NoPermission, *types.InvalidArgument, *types.PasswordExpired:
			e.Kind = cloud.Unauthorized
			e.Detail = "the vCenter refuses the credentials (" + codeOf(fault) + "): check the Secret, and whether the account may log in"
		case nil:
			if soap.IsSoapFault(err) {
				e.Kind, e.Detail = cloud.Unauthorized, "the single sign-on of the vCenter refuses the credentials: check the Secret"
			}
		}
		e.Detail, e.Uncertain = "logging in: "+e.Detail, false
		if e.Kind == cloud.Unauthorized {
			a.login.Refuse(e)
		}
		return e
	}
	return nil
}

// contact returns the managed objects of the vCenter, which never change.
func (a *account) contact(ctx context.Context) (*vim25.Client, error) {
	if vim := a.known(); vim != nil {
		return vim, nil
	}
	content, err := methods.GetServiceContent(ctx, roundTripper(a.sender.try))
	if err != nil {
		return nil, err
	}
	if content.About.ApiType != "VirtualCenter" || content.SearchIndex == nil || content.SessionManager == nil {
		return nil, refuse("", cloud.Misconfigured, "the endpoint is a host and no vCenter: set spec.endpoint to that of the vCenter")
	}
	vim := &vim25.Client{Client: a.sender.soap, ServiceContent: content, RoundTripper: a.session}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.vim = vim
	return vim, nil
}

// present sends the credentials.
func (a *account) present(ctx context.Context, vim *vim25.Client) error {
	manager := *vim.ServiceContent.SessionManager
	if a.credentials.Username != "" {
		_, err := methods.Login(ctx, roundTripper(a.sender.try), &types.Login{
			This: manager, UserName: a.credentials.Username, Password: a.credentials.Password, Locale: "en_US",
		})
		return err
	}
	signer := &sts.Signer{Token: a.credentials.Token}
	if a.credentials.Token == "" {
		var err error
		if signer, err = a.issue(ctx); err != nil {
			return err
		}
	}
	ctx = a.sender.soap.WithHeader(ctx, soap.Header{Security: signer})
	_, err := methods.LoginByToken(ctx, roundTripper(a.sender.try), &types.LoginByToken{This: manager, Locale: "en_US"})
	return err
}

// issue asks the single sign-on of the vCenter for a token that only the holder of the
// certificate's key can use.
func (a *account) issue(ctx context.Context) (*sts.Signer, error) {
	pair, err := a.credentials.pair()
	if err != nil {
		return nil, err
	}
	ctx = transport.WithCall(ctx, transport.Call{Route: "Issue", CloudWide: true})
	for _, path := range []string{sts.Path, sts.Path + "/" + defaultDomain} {
		service := a.sender.over(a.sender.soap.NewServiceClient(path, sts.Namespace))
		var signer *sts.Signer
		signer, err = (&sts.Client{Client: service, RoundTripper: service}).Issue(ctx, sts.TokenRequest{Certificate: pair, Delegatable: true})
		if own, ok := errors.AsType[*cloud.Error](err); ok && own.Code == strconv.Itoa(http.StatusNotFound) {
			continue
		}
		return signer, err
	}
	return nil, err
}
