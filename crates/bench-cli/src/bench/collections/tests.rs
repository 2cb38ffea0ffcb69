use super::*;

#[test]
fn one_collection_keeps_within_its_bounds_whatever_the_shape_of_the_repository() {
    let spec = Spec { most_records: 6_000, ..Spec::default() };
    let fetched = fetch_all(&spec, 300).unwrap();
    let results = CollectionsResults::new(&fetched, None);
    assert!(results.total.ratio < 1.0 / 20.0, "{results:#?}");
    assert!(results.total.worst_ratio < 1.1, "{results:#?}");
    assert!(results.total.median_requests <= 6, "{results:#?}");
    let text = results.to_text();
    assert!(text.contains("1/") && text.contains("layer 2"), "{text}");
}
