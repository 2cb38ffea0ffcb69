//! The boxes of the texts of a picture, for tests: none may cover another, a point, or the edge.

/// A text with its box.
#[derive(Debug)]
struct Text {
    text: String,
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
}

/// All pairs of texts that overlap, labels on points, and texts beyond the edges.
pub(super) fn faults(svg: &str) -> Vec<String> {
    let texts: Vec<Text> = elements(svg, "text").map(text).collect();
    let (width, height) = size(svg);
    let mut faults = Vec::new();
    for (at, a) in texts.iter().enumerate() {
        if a.left < 0.0 || a.right > width || a.top < 0.0 || a.bottom > height {
            faults.push(format!("{:?} is outside", a.text));
        }
        for b in &texts[at + 1..] {
            if a.meets(b.left, b.right, b.top, b.bottom) {
                faults.push(format!("{:?} covers {:?}", a.text, b.text));
            }
        }
        for (x, y) in
            elements(svg, "circle").map(|circle| (number(circle, "cx"), number(circle, "cy")))
        {
            if a.meets(x - 4.0, x + 4.0, y - 4.0, y + 4.0) {
                faults.push(format!("{:?} covers a point", a.text));
            }
        }
    }
    faults
}

impl Text {
    fn meets(&self, left: f64, right: f64, top: f64, bottom: f64) -> bool {
        self.left < right && left < self.right && self.top < bottom && top < self.bottom
    }
}

/// Where an element with this name begins.
fn elements<'s>(svg: &'s str, name: &'static str) -> impl Iterator<Item = &'s str> {
    svg.split('<')
        .filter(move |part| part.strip_prefix(name).is_some_and(|rest| rest.starts_with(' ')))
}

fn text(element: &str) -> Text {
    let (attributes, text) = element.split_once('>').unwrap();
    let class = attribute(attributes, "class");
    let has = |name: &str| class.split(' ').any(|part| part == name);
    // The widest of the usual fonts of systems, DejaVu Sans.
    let (size, each) = match () {
        () if has("title") => (16.0, 0.66),
        () if has("label") => (11.0, if has("ours") { 0.66 } else { 0.6 }),
        () if has("soft") || has("tick") || has("ratio") => (12.0, 0.58),
        () if has("number") || has("ours") => (13.0, 0.68),
        () => (13.0, 0.6),
    };
    let width = each * size * text.chars().count() as f64;
    let (x, y) = (number(attributes, "x"), number(attributes, "y"));
    let left = match () {
        () if has("end") || has("name") || has("number") => x - width,
        () if has("middle") => x - width / 2.0,
        () => x,
    };
    Text {
        text: text.to_owned(),
        left,
        right: left + width,
        top: y - 0.8 * size,
        bottom: y + 0.2 * size,
    }
}

fn attribute<'e>(element: &'e str, name: &str) -> &'e str {
    let value = element.split_once(&format!(" {name}=\"")).unwrap().1;
    value.split_once('"').unwrap().0
}

fn number(element: &str, name: &str) -> f64 {
    attribute(element, name).parse().unwrap()
}

fn size(svg: &str) -> (f64, f64) {
    (number(svg, "width"), number(svg, "height"))
}

#[test]
fn texts_that_cover_each_other_a_point_or_the_edge_are_found() {
    let svg = |inside: &str| format!("<svg width=\"200\" height=\"50\">{inside}</svg>");
    let text = |x: u32, y: u32| format!("<text class=\"soft\" x=\"{x}\" y=\"{y}\">words</text>");
    assert!(faults(&svg(&(text(10, 20) + &text(60, 20)))).is_empty());
    assert_eq!(faults(&svg(&(text(10, 20) + &text(30, 20)))).len(), 1);
    assert_eq!(faults(&svg(&text(190, 20))).len(), 1);
    let point = "<circle cx=\"20\" cy=\"17\" r=\"5\"></circle>";
    assert_eq!(faults(&svg(&(text(10, 20) + point))).len(), 1);
}
