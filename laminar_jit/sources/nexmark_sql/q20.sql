-- Bids with their auction, in category 10.
SELECT b.auction, b.bidder, b.price, b.channel, b.date_time AS bid_time,
    a.item_name, a.initial_bid, a.reserve, a.date_time AS auction_time, a.expires, a.seller, a.category
FROM bid AS b INNER JOIN auction AS a ON b.auction = a.id
WHERE a.category = 10
