// Command screenshot writes a picture of the page of a mock cloud with some servers and
// a fault to the PNG file that its argument names. make screenshot runs it.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/draw"
	"image/png"
	"os"

	"github.com/chromedp/chromedp"

	"github.com/privatecloud/operator/test/page/browser"
)

// width and height are the size of the picture in pixels.
const width, height = 1280, 1000

func main() {
	if err := run(context.Background(), os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "screenshot:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, file string) (err error) {
	mock, err := browser.StartMock(ctx, "--utilisation=sine:1m")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, mock.Stop()) }()
	if err := fill(ctx, mock); err != nil {
		return err
	}
	chromium, end, err := browser.Start(ctx)
	if err != nil {
		return err
	}
	defer end()
	tab, closeTab, err := browser.Open(chromium, mock.Admin+"/")
	if err != nil {
		return err
	}
	defer closeTab()
	if err := tab.Do(chromedp.EmulateViewport(width, height)); err != nil {
		return err
	}
	if err := tab.Until(`/In the last (2[5-9]|[3-9].) s/.test(document.getElementById("graph-caption").textContent)`); err != nil {
		return err
	}
	picture, err := browser.Get(tab, chromedp.CaptureScreenshot())
	if err != nil {
		return err
	}
	small, err := compress(picture)
	if err != nil {
		return err
	}
	return os.WriteFile(file, small, 0o644)
}

// fill creates what the picture shows.
func fill(ctx context.Context, mock *browser.Mock) error {
	type call struct{ url, body string }
	calls := []call{{mock.API + "/networks", `{"name":"front","cidr":"10.0.0.0/24","gateway":"10.0.0.1"}`}}
	for i := range 5 {
		calls = append(calls, call{mock.API + "/servers", fmt.Sprintf(`{"name":"web-%d","cpu":2,"memory":4}`, i+1)})
	}
	calls = append(calls, call{mock.API + "/servers", `{"name":"standby","powerState":"Off"}`},
		call{mock.Admin + "/faults", `{"id":"rate-limit","match":{"path":"/**","probability":0.2},"status":429,"retryAfter":"3"}`})
	for _, c := range calls {
		if status, answer := browser.Call(ctx, "POST", c.url, c.body); status != 201 {
			return fmt.Errorf("POST %s: %d %s", c.url, status, answer)
		}
	}
	return nil
}

// compress encodes a PNG again, with as few bytes as possible and without alpha channel.
func compress(picture []byte) ([]byte, error) {
	decoded, err := png.Decode(bytes.NewReader(picture))
	if err != nil {
		return nil, fmt.Errorf("decoding the picture: %w", err)
	}
	opaque := image.NewRGBA(decoded.Bounds())
	draw.Draw(opaque, opaque.Bounds(), decoded, decoded.Bounds().Min, draw.Src)
	var out bytes.Buffer
	encoder := png.Encoder{CompressionLevel: png.BestCompression}
	if err := encoder.Encode(&out, opaque); err != nil {
		return nil, fmt.Errorf("encoding the picture: %w", err)
	}
	return out.Bytes(), nil
}
