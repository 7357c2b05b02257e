package inventory

import "github.com/privatecloud/operator/internal/cloud"

func (i *Inventory) RecordCreated(uid string, server cloud.Server) { i.RecordServer(uid, server) }
func (i *Inventory) RecordCreatedNetwork(n cloud.Network)          { i.RecordNetwork(n) }
func (d *Directory) Absent(name string) *Inventory                 { return New(d.clock).Cloud(name) }
