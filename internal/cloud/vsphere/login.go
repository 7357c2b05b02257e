package vsphere

import (
	"context"
	"errors"
	"net/http"
	"strconv"

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

// logIn opens a session. The caller holds the turn.
func (s *session) logIn(ctx context.Context) error {
	s.jar.clear()
	vim, err := s.contact(ctx)
	if err != nil {
		return err
	}
	if err := s.present(ctx, vim); err != nil {
		e := s.client.fail(ctx, "open session", err)
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
			s.login.Refuse(e)
		}
		return e
	}
	return nil
}

// contact returns the managed objects of the vCenter, which never change.
func (s *session) contact(ctx context.Context) (*vim25.Client, error) {
	s.mu.Lock()
	vim := s.vim
	s.mu.Unlock()
	if vim != nil {
		return vim, nil
	}
	content, err := methods.GetServiceContent(ctx, roundTripper(s.try))
	if err != nil {
		return nil, err
	}
	if content.About.ApiType != "VirtualCenter" || content.SearchIndex == nil || content.SessionManager == nil {
		return nil, refuse("", cloud.Misconfigured, "the endpoint is a host and no vCenter: set spec.endpoint to that of the vCenter")
	}
	vim = &vim25.Client{Client: s.soap, ServiceContent: content, RoundTripper: s}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.vim = vim
	return vim, nil
}

// present sends the credentials.
func (s *session) present(ctx context.Context, vim *vim25.Client) error {
	manager := *vim.ServiceContent.SessionManager
	if s.credentials.Username != "" {
		_, err := methods.Login(ctx, roundTripper(s.try), &types.Login{
			This: manager, UserName: s.credentials.Username, Password: s.credentials.Password, Locale: "en_US",
		})
		return err
	}
	signer := &sts.Signer{Token: s.credentials.Token}
	if s.credentials.Token == "" {
		var err error
		if signer, err = s.issue(ctx); err != nil {
			return err
		}
	}
	ctx = s.soap.WithHeader(ctx, soap.Header{Security: signer})
	_, err := methods.LoginByToken(ctx, roundTripper(s.try), &types.LoginByToken{This: manager, Locale: "en_US"})
	return err
}

// issue asks the single sign-on of the vCenter for a token that only the holder of the
// certificate's key can use.
func (s *session) issue(ctx context.Context) (*sts.Signer, error) {
	pair, err := s.credentials.pair()
	if err != nil {
		return nil, err
	}
	ctx = transport.WithCall(ctx, transport.Call{Route: "Issue", CloudWide: true})
	for _, path := range []string{sts.Path, sts.Path + "/" + defaultDomain} {
		service := s.over(s.soap.NewServiceClient(path, sts.Namespace))
		var signer *sts.Signer
		signer, err = (&sts.Client{Client: service, RoundTripper: service}).Issue(ctx, sts.TokenRequest{Certificate: pair, Delegatable: true})
		if own, ok := errors.AsType[*cloud.Error](err); ok && own.Code == strconv.Itoa(http.StatusNotFound) {
			continue
		}
		return signer, err
	}
	return nil, err
}
