package dialect

// Body reads a piece of a body that is JSON, cut anywhere, and keeps none of
// it. It reports what ended in the piece: of an array that is a stream its
// elements, of any other body nothing before EndBody.
func (r *Response) Body(b []byte) Seen {
	if r.ended || r.bodyText {
		return Seen{}
	}
	if !r.bodyBegun {
		start := firstByte(b)
		if start < 0 {
			return Seen{}
		}
		b = b[start:]
		r.bodyBegun, r.inBody = true, true
		r.begin()
		r.scan.Reset(r.d.shape)
		if c := b[0]; r.d.plainText && c != '{' && c != '[' {
			r.bodyText = true
			return Seen{}
		}
		r.bodyEvents = r.d.array && b[0] == '['
	}
	r.inArray = Seen{}
	r.scan.Write(b, (*sink)(r))
	return r.inArray
}

// firstByte returns where the first byte that is not white space or part of a
// byte order mark is, -1 when there is none.
func firstByte(b []byte) int {
	for i, c := range b {
		switch c {
		case ' ', '\t', '\r', '\n', 0xEF, 0xBB, 0xBF:
		default:
			return i
		}
	}
	return -1
}

// endElement ends an event of a body that is an array of them.
func (r *Response) endElement() {
	if !r.bodyEvents || r.ended {
		return
	}
	seen := r.commit()
	r.begin()
	r.inArray.Content = r.inArray.Content || seen.Content
	r.inArray.Visible = r.inArray.Visible || seen.Visible
	r.inArray.Finished = r.inArray.Finished || seen.Finished
	r.inArray.Terminal = r.inArray.Terminal || seen.Terminal
}

// EndBody ends a body. A body is one event, whose number is 0; what a body that
// was cut off had told by then counts.
func (r *Response) EndBody() Seen {
	if !r.bodyBegun || r.ended {
		return Seen{}
	}
	a := &r.answer
	if r.scan.Err() != nil {
		a.ParseErrors++
	}
	switch {
	case r.bodyText:
		a.Recognised = true
		r.ev.visible, r.ev.terminal = true, true
	case r.bodyEvents:
		if r.scan.Done() && a.Recognised && a.Error == "" {
			r.terminate()
		}
		r.ended = true
		return Seen{}
	default:
		r.ev.terminal = false
	}
	seen := r.commit()
	if !r.bodyText && r.scan.Done() && a.Recognised && a.Error == "" {
		seen.Terminal = true
		r.terminate()
	}
	r.ended = true
	r.settleUsage()
	return seen
}

// BodyWhole tells whether a JSON body, as far as it has come, is a whole value.
func (r *Response) BodyWhole() bool { return r.bodyText || r.scan.Done() }
