-- Bids with what a side table says of their auction; side_input has columns key and value.
SELECT b.auction, b.bidder, b.price, b.date_time, s.value
FROM bid AS b INNER JOIN side_input AS s ON b.auction % 10000 = s.key
